"""What `fits` says yes to is what the slower walks accept without a change."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from volcano.api.core import Event, Pod
from volcano.api.meta import JSON
from volcano.api.scheme import BUILT_IN, resource_type
from volcano.embedded.apiserver.schemas.builtin.fitting import fits
from volcano.embedded.apiserver.schemas.builtin.strict_fields import check_types, prune_core

PODS, EVENTS = resource_type(Pod), resource_type(Event)
CONTAINER: JSON = {
    "name": "main",
    "image": "any",
    "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
    "ports": [{"containerPort": 80}],
    "livenessProbe": {"httpGet": {"port": "web"}},
}
RIGHT: JSON = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a", "creationTimestamp": "2026-11-18T01:43:51Z", "labels": {"a": "b"}},
    "spec": {"containers": [CONTAINER], "hostNetwork": False, "activeDeadlineSeconds": 5},
    "status": {"startTime": "2026-02-28T23:59:59Z", "conditions": [{"type": "Ready", "status": "True"}]},
}


def changed(*path: str | int, value: Any) -> JSON:
    obj = copy.deepcopy(RIGHT)
    inner: Any = obj
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    return obj


def test_a_plain_pod_fits_and_the_walks_leave_it_as_it_is() -> None:
    obj = copy.deepcopy(RIGHT)
    assert fits(PODS, obj)
    check_types(PODS, obj)
    assert prune_core(PODS, obj) == []
    assert obj == RIGHT


@pytest.mark.parametrize(
    "obj",
    [
        changed("spec", "unknown", value=1),
        changed("spec", "hostNetwork", value=None),
        changed("spec", "hostNetwork", value="true"),
        changed("spec", "activeDeadlineSeconds", value=True),
        changed("spec", "activeDeadlineSeconds", value=2.0),
        changed("spec", "activeDeadlineSeconds", value=2**63),
        changed("spec", "containers", value=[None]),
        changed("spec", "containers", value={}),
        changed("spec", "containers", 0, "ports", 0, "containerPort", value=2**31),
        changed("spec", "containers", 0, "resources", "requests", "cpu", value="lots"),
        changed("metadata", "labels", "a", value=None),
        changed("metadata", "labels", "a", value=1),
        changed("status", "startTime", value="2026-02-30T00:00:00Z"),
        changed("status", "startTime", value="2026-02-20T24:00:00Z"),
        changed("status", "startTime", value="2026-02-20T23:00:00Z\n"),
        changed("spec", value=None),
    ],
)
def test_an_object_that_the_walks_would_change_or_refuse_does_not_fit(obj: JSON) -> None:
    assert not fits(PODS, obj)


def test_every_built_in_kind_but_the_one_that_contains_itself_is_known() -> None:
    unknown = [row.kind for row in BUILT_IN if not fits(row, {"metadata": {"name": "a"}})]
    assert unknown == ["CustomResourceDefinition"]


def test_fields_whose_names_are_no_names_of_python_are_known() -> None:
    assert fits(EVENTS, {"metadata": {"managedFields": [{"fieldsV1": {"f:metadata": {}}}]}, "source": {"host": "a"}})
