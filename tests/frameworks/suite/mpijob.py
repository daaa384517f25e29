"""Kubeflow's training operator: an MPIJob whose launcher reaches its workers through `kubectl exec`."""

from tests.frameworks.framework import Framework

FRAMEWORK = Framework("mpijob", megabytes=300, programs=("go=golang-go", "mpirun=openmpi-bin"), install_seconds=3600)
