"""JobFlows, whose steps are Jobs that wait for one another, and the JobTemplates these are made from."""

from volcano.controllers.jobflow.controller import JobFlowController
from volcano.controllers.jobflow.templates import JobTemplateController

__all__ = ["JobFlowController", "JobTemplateController"]
