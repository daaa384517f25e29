"""The index rules that several components declare."""

from typing import Any

import pytest

from volcano.api.core import Pod
from volcano.api.decode import decode_object
from volcano.api.indexes import PODS_BY_JOB, PODS_BY_NODE, QUEUES_BY_PARENT
from volcano.api.scheduling import Queue

JOB = "volcano.sh/job-name"


@pytest.mark.parametrize(
    ("metadata", "found"),
    [
        pytest.param({}, [], id="a pod of no job"),
        pytest.param({"annotations": {JOB: "a"}}, ["ns/a"], id="named by an annotation"),
        pytest.param({"labels": {JOB: "a"}}, ["ns/a"], id="named by a label"),
        pytest.param({"annotations": {JOB: "a"}, "labels": {JOB: "b"}}, ["ns/a"], id="the annotation wins"),
    ],
)
def test_pods_are_found_by_their_job(metadata: dict[str, Any], found: list[str]):
    pod = decode_object(Pod, {"metadata": {"name": "p", "namespace": "ns", **metadata}})

    assert PODS_BY_JOB[Pod]["job"](pod) == found


@pytest.mark.parametrize("node", ["", "n1"])
def test_pods_are_found_by_their_node(node: str):
    pod = decode_object(Pod, {"metadata": {"name": "p"}, "spec": {"nodeName": node}})

    assert PODS_BY_NODE[Pod]["node"](pod) == [node]


@pytest.mark.parametrize(
    ("name", "parent", "found"),
    [
        pytest.param("q", "p", ["p"], id="a parent that is named"),
        pytest.param("q", "", ["root"], id="without a parent it is the root's child"),
        pytest.param("root", "", [""], id="the root is a child of none"),
    ],
)
def test_queues_are_found_by_their_parent(name: str, parent: str, found: list[str]):
    queue = decode_object(Queue, {"metadata": {"name": name}, "spec": {"parent": parent}})

    assert QUEUES_BY_PARENT[Queue]["parent"](queue) == found
