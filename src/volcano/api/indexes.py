"""Index rules that several components declare, so that each can find objects by what they name.

An index is declared by the component that reads it (`Controller.indexes`, or the indexes of a Mirror); here are only
the rules that must be the same everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

from volcano.api.batch import JOB_NAME_KEY
from volcano.api.core import Pod
from volcano.api.meta import Resource
from volcano.api.scheduling import ROOT_QUEUE, Queue

IndexRule: TypeAlias = Callable[[Any], Iterable[str]]
"""The values under which an object is found."""
Indexes: TypeAlias = Mapping[type[Resource], Mapping[str, IndexRule]]
"""For each kind, its indexes by name."""


def _node_of(pod: Pod) -> list[str]:
    return [pod.spec.node_name]


def _job_of(pod: Pod) -> list[str]:
    name = pod.annotations.get(JOB_NAME_KEY) or pod.labels.get(JOB_NAME_KEY)
    return [f"{pod.namespace}/{name}"] if name else []


def _parent_of(queue: Queue) -> list[str]:
    return [queue.spec.parent or (ROOT_QUEUE if queue.name != ROOT_QUEUE else "")]


PODS_BY_NODE: Final[Indexes] = {Pod: {"node": _node_of}}
PODS_BY_JOB: Final[Indexes] = {Pod: {"job": _job_of}}
"""By `namespace/job`."""
QUEUES_BY_PARENT: Final[Indexes] = {Queue: {"parent": _parent_of}}
"""A queue without a parent is a child of the root; the root is a child of none."""
