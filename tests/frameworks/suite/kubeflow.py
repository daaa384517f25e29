"""Kubeflow: the training operator with its webhooks; a PyTorchJob that runs, and one that waits as a gang."""

from tests.frameworks.framework import Framework
from tests.running_server import Client
from tests.system.real_system import PODS


def works(api: Client) -> None:
    waiting = [pod for pod in api.get(PODS).body["items"] if pod["metadata"]["name"].startswith("too-big-")]
    assert len(waiting) == 3 and not any(pod["spec"].get("nodeName") for pod in waiting), waiting


FRAMEWORK = Framework("kubeflow", megabytes=3300, programs=("go=golang-go",), install_seconds=3600, works=works)
