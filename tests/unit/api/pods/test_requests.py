"""What a pod requests and limits: one table for the rule, and proof that every component asks it."""

from __future__ import annotations

import pytest

from volcano.api.core import Pod, PodSpec
from volcano.api.decode import decode_object
from volcano.api.pods.amounts import parsed, to_wire
from volcano.api.pods.requests import has_pod_level_resources, pod_limits, pod_requests, read_resources
from volcano.api.quantity import QuantityError, parse_quantity
from volcano.scheduler.model.requests import assumed_request_of, request_of


def container(cpu: str = "", *, limit: str = "", **more) -> dict:
    requests = {"cpu": cpu} if cpu else {}
    return {"name": "c", "resources": {"requests": requests, "limits": {"cpu": limit} if limit else {}}, **more}


def sidecar(cpu: str, **more) -> dict:
    return container(cpu, restartPolicy="Always", **more)


CASES = {
    "nothing is stated": ({"containers": [container()]}, {}, {}),
    "containers add up": ({"containers": [container("1"), container("500m")]}, {"cpu": "1500m"}, {}),
    "an init container that is smaller does not count": (
        {"containers": [container("2")], "initContainers": [container("1")]},
        {"cpu": "2"},
        {},
    ),
    "init containers run one after the other": (
        {"containers": [container("1")], "initContainers": [container("2"), container("3")]},
        {"cpu": "3"},
        {},
    ),
    "a sidecar runs beside the containers": (
        {"containers": [container("1")], "initContainers": [sidecar("1")]},
        {"cpu": "2"},
        {},
    ),
    "a sidecar runs beside the init containers after it": (
        {"containers": [container("1")], "initContainers": [container("2"), sidecar("1"), container("3")]},
        {"cpu": "4"},
        {},
    ),
    "a sidecar does not run beside the init containers before it": (
        {"containers": [container("1")], "initContainers": [container("3"), sidecar("1")]},
        {"cpu": "3"},
        {},
    ),
    "a restart policy of a container makes no sidecar": (
        {"containers": [container("1", restartPolicy="Always")], "initContainers": [container("2")]},
        {"cpu": "2"},
        {},
    ),
    "pod-level amounts replace the sum": (
        {"containers": [container("1")], "resources": {"requests": {"cpu": "4"}, "limits": {"cpu": "5"}}},
        {"cpu": "4"},
        {"cpu": "5"},
    ),
    "pod-level amounts replace only what they name": (
        {
            "containers": [{"name": "c", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}],
            "resources": {"requests": {"memory": "2Gi"}},
        },
        {"cpu": "1", "memory": "2Gi"},
        {},
    ),
    "devices belong to containers, not to the pod as a whole": (
        {
            "containers": [{"name": "c", "resources": {"requests": {"nvidia.com/gpu": "1"}}}],
            "resources": {"requests": {"nvidia.com/gpu": "8", "hugepages-2Mi": "4Mi"}},
        },
        {"hugepages-2Mi": "4Mi", "nvidia.com/gpu": "1"},
        {},
    ),
    "limits alone are no requests": ({"containers": [container(limit="2")]}, {}, {"cpu": "2"}),
    "limits of sidecars add up too": (
        {"containers": [container(limit="2")], "initContainers": [sidecar("", limit="1")]},
        {},
        {"cpu": "3"},
    ),
    "overhead comes on top of requests, and of limits where there are some": (
        {"containers": [container("1", limit="2")], "overhead": {"cpu": "250m", "memory": "64Mi"}},
        {"cpu": "1250m", "memory": "64Mi"},
        {"cpu": "2250m"},
    ),
    "overhead comes on top of pod-level amounts": (
        {"containers": [container()], "resources": {"requests": {"cpu": "4"}}, "overhead": {"cpu": "1"}},
        {"cpu": "5"},
        {},
    ),
    "a malformed quantity counts as absent": ({"containers": [container("much"), container("1")]}, {"cpu": "1"}, {}),
}


@pytest.mark.parametrize(("spec", "requests", "limits"), CASES.values(), ids=CASES)
def test_what_a_pod_requests_and_limits(spec: dict, requests: dict, limits: dict):
    sized = read_resources(spec)

    assert to_wire(pod_requests(sized)) == requests
    assert to_wire(pod_limits(sized)) == limits


@pytest.mark.parametrize("name", [name for name in CASES if "malformed" not in name])
def test_the_scheduler_counts_the_same(name: str):
    spec, requests, _ = CASES[name]

    amounts = request_of(a_pod(spec)).amounts

    assert amounts["cpu"] == parse_quantity(requests.get("cpu", 0)).milli
    assert amounts["memory"] == parse_quantity(requests.get("memory", 0)).value
    assert amounts["pods"] == 1


def test_the_scheduler_sets_a_pod_with_a_malformed_quantity_aside():
    with pytest.raises(QuantityError):
        request_of(a_pod({"containers": [container("much")]}))


@pytest.mark.parametrize(
    ("spec", "cpu"),
    [
        ({"containers": [container(), container("1")]}, 1100),
        ({"containers": [container("1")], "initContainers": [sidecar("")]}, 1100),
        ({"containers": [container("0")]}, 0),
        ({"containers": [container()], "resources": {"requests": {"cpu": "4"}}}, 4000),
    ],
    ids=["each container that states none", "sidecars too", "zero is stated", "the pod as a whole states it"],
)
def test_scoring_assumes_a_request_where_none_is_stated(spec: dict, cpu: float):
    assert assumed_request_of(a_pod(spec))[0] == cpu


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        ({}, False),
        ({"resources": {}}, False),
        ({"resources": {"claims": [{"name": "x"}]}}, False),
        ({"resources": {"requests": {"nvidia.com/gpu": 1}}}, False),
        ({"resources": {"limits": {"memory": "1Gi"}}}, True),
    ],
)
def test_whether_the_pod_as_a_whole_states_its_size(spec: dict, found: bool):
    assert has_pod_level_resources(read_resources(spec)) is found


@pytest.mark.parametrize("spec", [None, [], {"containers": 5}, {"containers": [{"resources": "much"}]}])
def test_a_spec_that_cannot_be_read_requests_nothing(spec: object):
    assert pod_requests(read_resources(spec)) == {}


def test_nulls_count_as_absent():
    spec = {"containers": [container("1")], "initContainers": None, "overhead": None}

    assert to_wire(pod_requests(read_resources(spec), parse=parsed)) == {"cpu": "1"}


def a_pod(spec: dict) -> Pod:
    return decode_object(Pod, {"metadata": {"name": "p"}, "spec": spec})


def test_a_pod_that_a_component_has_read_counts_the_same():
    spec = {"containers": [container("1")], "initContainers": [sidecar("1")]}
    read = a_pod(spec).spec

    assert isinstance(read, PodSpec)
    assert pod_requests(read) == pod_requests(read_resources(spec))
