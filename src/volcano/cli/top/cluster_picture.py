"""What `vcctl top` shows, read at one moment; everything below it computes from this alone."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import datetime

from volcano.api.meta import JSON
from volcano.api.pods.amounts import Amounts, added, amounts_of
from volcano.api.scheduling import ROOT_QUEUE
from volcano.cli.connection import ApiConnection
from volcano.cli.formats import utc_now
from volcano.cli.node import requested_by_node
from volcano.cli.resources import EVENTS, JOBS, NODES, POD_GROUPS, PODS, QUEUES

FROM_CACHE = "0"
"""A list of any revision, which the server answers from memory; what is shown is a second old anyway."""
MAX_EVENTS = 200
COUNTED_PHASES = ("Pending", "Inqueue", "Running")


@dataclass(frozen=True)
class ClusterPicture:
    """The objects, and sums that several tables need."""

    at: datetime
    queues: list[JSON]
    """Without the root, which holds no jobs."""
    jobs: list[JSON]
    nodes: list[JSON]
    pods: list[JSON]
    phases_by_queue: dict[str, Counter[str]]
    used: dict[str, Amounts]
    total: Amounts
    looked_at: tuple[str, str] | None = None
    """The namespace and name of the job whose events were read too."""
    events: list[JSON] = field(default_factory=list)
    """Oldest first."""


def read_picture(connection: ApiConnection, looked_at: tuple[str, str] | None = None) -> ClusterPicture:
    """Ask the API server once; `looked_at` is the namespace and name of a job whose events are wanted too."""
    phases: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for group in connection.list(POD_GROUPS, resourceVersion=FROM_CACHE):
        queue = (group.get("spec") or {}).get("queue", "")
        phases[queue][(group.get("status") or {}).get("phase", "")] += 1
    nodes = connection.list(NODES, resourceVersion=FROM_CACHE)
    queues = connection.list(QUEUES, resourceVersion=FROM_CACHE)
    pods = connection.list(PODS, resourceVersion=FROM_CACHE)
    return ClusterPicture(
        at=utc_now(),
        queues=[each for each in queues if each["metadata"]["name"] != ROOT_QUEUE],
        jobs=connection.list(JOBS, resourceVersion=FROM_CACHE),
        nodes=nodes,
        pods=pods,
        phases_by_queue=dict(phases),
        used=requested_by_node(pods),
        total=added(*(allocatable(node) for node in nodes)),
        looked_at=looked_at,
        events=_events(connection, *looked_at) if looked_at else [],
    )


def _events(connection: ApiConnection, namespace: str, name: str) -> list[JSON]:
    chosen = f"involvedObject.kind=Job,involvedObject.name={name}"
    found = connection.list(EVENTS, namespace, fieldSelector=chosen, limit=str(MAX_EVENTS))
    return sorted(found, key=lambda event: str(event.get("lastTimestamp") or ""))


def allocatable(node: JSON) -> Amounts:
    """What pods can request of a node."""
    return amounts_of((node.get("status") or {}).get("allocatable"))
