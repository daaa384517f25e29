"""Kubeflow Trainer: a TrainJob on three pods in one PodGroup, by way of JobSet."""

from tests.frameworks.framework import Framework

FRAMEWORK = Framework("trainer", megabytes=3300, programs=("go=golang-go",), install_seconds=3600)
