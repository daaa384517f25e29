"""KubeRay: the operator with volcano as its batch scheduler, and a RayCluster of three that runs a job."""

from tests.frameworks.framework import Framework

FRAMEWORK = Framework("kuberay", megabytes=600, programs=("go=golang-go",), install_seconds=3600)
