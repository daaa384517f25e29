"""Workloads for tests, and stand-ins for the kubelet."""

from __future__ import annotations

from volcano.api.core import Pod
from volcano.testing.pure_world import PureWorld


def a_template(image: str = "one", **spec) -> dict:
    return {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": image}], **spec},
    }


def a_workload(kind: str, name: str = "w", *, api: str = "apps/v1", template: dict | None = None, **spec) -> dict:
    selector = {} if kind in ("Job",) else {"selector": {"matchLabels": {"app": "web"}}}
    if kind == "ReplicationController":
        selector = {"selector": {"app": "web"}}
    return {
        "apiVersion": api,
        "kind": kind,
        "metadata": {"name": name},
        "spec": {**selector, "template": template or a_template(), **spec},
    }


def pods(world: PureWorld) -> list[Pod]:
    return world.all(Pod)


def set_pod(world: PureWorld, name: str, phase: str = "Running", *, ready: bool = True, **status) -> None:
    stamp = world.now.replace(microsecond=0).isoformat()
    condition = {
        "type": "Ready",
        "status": "True" if ready and phase == "Running" else "False",
        "lastTransitionTime": stamp,
    }
    patch = {"status": {"phase": phase, "conditions": [condition], **status}, "spec": {"nodeName": "n"}}
    world.change(Pod, name, patch)


def start_all(world: PureWorld) -> None:
    """Every pod that waits runs and is ready."""
    for pod in pods(world):
        if pod.status.phase not in ("Running", "Succeeded", "Failed"):
            set_pod(world, pod.name)
    world.settle()


def images(world: PureWorld) -> list[str]:
    return sorted(pod.spec.containers[0].image for pod in pods(world))
