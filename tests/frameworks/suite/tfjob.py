"""Kubeflow's training operator: a TFJob whose two workers use MultiWorkerMirroredStrategy."""

from tests.frameworks.framework import Framework

FRAMEWORK = Framework("tfjob", megabytes=600, programs=("go=golang-go",), install_seconds=3600)
