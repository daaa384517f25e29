"""Volcano Jobs: pods, PodGroup and plugins' objects, from submission to clean-up."""

from volcano.controllers.job.controller import JobController

__all__ = ["JobController"]
