"""JobSet: a driver and workers in one PodGroup."""

from tests.frameworks.framework import Framework

FRAMEWORK = Framework("jobset", megabytes=300, programs=("go=golang-go",), install_seconds=3600)
