"""NodeLoads: what the pods of each node request, kept current with each change of a pod; all resources alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from volcano.api.core import FINISHED_POD_PHASES, Pod
from volcano.api.pods.amounts import Amounts, added
from volcano.api.pods.requests import pod_requests
from volcano.api.quantity import NANO, Quantity
from volcano.dashboard.watched import Watched
from volcano.machinery.world import Change

ONE_POD: Final = {"pods": Quantity(NANO)}
NOTHING: Final[Amounts] = {}


class NodeLoads:
    def __init__(self, watched: Watched) -> None:
        self._by_node: dict[str, dict[str, Quantity]] = {}
        self._counted: dict[str, tuple[str, Amounts]] = {}  # pod UID → its node and what it requests
        watched.listen(Pod, self._take)

    def of(self, node: str) -> Mapping[str, Quantity]:
        return self._by_node.get(node, NOTHING)

    def total(self) -> Amounts:
        return added(*self._by_node.values())

    def _take(self, change: Change[Pod]) -> None:
        pod = change.object
        self._forget(pod.uid)
        if change.new is not None and is_on_a_node(pod):
            amounts = added(pod_requests(pod.spec), ONE_POD)
            self._counted[pod.uid] = (pod.spec.node_name, amounts)
            self._by_node[pod.spec.node_name] = added(self.of(pod.spec.node_name), amounts)

    def _forget(self, uid: str) -> None:
        node, amounts = self._counted.pop(uid, ("", NOTHING))
        if not node:
            return
        left = self._by_node[node]
        for name, amount in amounts.items():
            left[name] = left[name] - amount
            if not left[name].nanos:
                del left[name]
        if not left:
            del self._by_node[node]


def is_on_a_node(pod: Pod) -> bool:
    return bool(pod.spec.node_name) and pod.status.phase not in FINISHED_POD_PHASES


def requested_by(pods: Iterable[Pod]) -> dict[str, Amounts]:
    """The same sums by node, of some pods only."""
    found: dict[str, Amounts] = {}
    for pod in pods:
        if is_on_a_node(pod):
            node = pod.spec.node_name
            found[node] = added(found.get(node, NOTHING), pod_requests(pod.spec), ONE_POD)
    return found
