"""WDL: miniwdl, as a stand-in for Cromwell, runs each task of a workflow as a Job."""

from tests.frameworks.framework import Framework

FRAMEWORK = Framework("wdl", megabytes=30)
