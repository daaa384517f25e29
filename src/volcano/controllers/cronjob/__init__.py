"""CronJobs: Jobs that recur."""

from volcano.controllers.cronjob.controller import CronJobController

__all__ = ["CronJobController"]
