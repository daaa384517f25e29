"""Shapes of pods that ask for devices, while pods come and go."""

from __future__ import annotations

from typing import Any

from volcano.api.core import Pod
from volcano.api.decode import decode_object
from volcano.dashboard.pod_shapes import DeviceShapes
from volcano.machinery.world import Mirror

GPU = "nvidia.com/gpu"


def a_pod(name: str, **asked: str) -> Pod:
    container = {
        "name": "c",
        "resources": {"requests": {key.replace("gpu", GPU): value for key, value in asked.items()}},
    }
    meta: dict[str, Any] = {"name": name, "namespace": "ns", "uid": name, "resourceVersion": "1"}
    return decode_object(Pod, {"metadata": meta, "spec": {"containers": [container]}})


def test_pods_of_one_shape_count_together_until_they_are_gone():
    mirror = Mirror()
    shapes = DeviceShapes(mirror)  # type: ignore[arg-type]
    for pod in (
        a_pod("a", cpu="2", gpu="1"),
        a_pod("b", cpu="2", gpu="1"),
        a_pod("c", cpu="4", gpu="4"),
        a_pod("d", cpu="1"),
    ):
        mirror.put(pod)

    found = shapes.most_frequent()
    assert [(shape.requests, shape.weight) for shape in found] == [
        ({"cpu": 2.0, GPU: 1.0}, 2.0),
        ({"cpu": 4.0, GPU: 4.0}, 1.0),
    ]

    for pod in (a_pod("a", cpu="2", gpu="1"), a_pod("c", cpu="4", gpu="4"), a_pod("d", cpu="1")):
        mirror.remove(Pod, pod.key)
    assert [shape.weight for shape in shapes.most_frequent()] == [1.0]
