"""metrics.k8s.io: what nodes and pods use now, asked of the nodes themselves.

A node answers on its kubelet's /stats/summary; one that cannot be reached is left out, as metrics-server does. Pods of
simulated nodes use nothing, so they are shown to use a fixed share of what they request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

import msgspec

from volcano.api.errors import ApiError, BadRequest, MethodNotAllowed, NotFound
from volcano.api.kubelet import NODE_HEADER, SIMULATED_RUNTIME
from volcano.api.meta import JSON
from volcano.api.quantity import QuantityError, parse_quantity
from volcano.api.scheme import NODE_METRICS, POD_METRICS
from volcano.api.selectors import SelectorError, parse_label_selector
from volcano.api.times import timestamp
from volcano.embedded.apiserver.exchange import Exchange
from volcano.embedded.apiserver.kinds.kubelets import kubelet_address
from volcano.embedded.apiserver.store.contract import Store
from volcano.embedded.apiserver.wire.outbound import Outbound
from volcano.embedded.apiserver.wire.representation import reply
from volcano.embedded.apiserver.wire.requests import RequestTarget
from volcano.machinery.clock import Clock
from volcano.machinery.transport import Request, Response

GROUP: Final = NODE_METRICS.group
METRICS: Final = (NODE_METRICS, POD_METRICS)
SIMULATED_SHARE: Final = Fraction(1, 2)  # of its request that a simulated pod uses
SUMMARY_SECONDS: Final = 10.0
MAX_NODES_AT_ONCE: Final = 16
WINDOW: Final = "10s"
_BYTES_PER_KI: Final = 1024


class Used(msgspec.Struct, frozen=True):
    """An amount of CPU and memory."""

    nanocores: int = 0
    memory_bytes: int = 0

    def __add__(self, other: Used) -> Used:
        return Used(self.nanocores + other.nanocores, self.memory_bytes + other.memory_bytes)

    def quantities(self) -> JSON:
        return {"cpu": f"{self.nanocores}n", "memory": f"{-(-self.memory_bytes // _BYTES_PER_KI)}Ki"}


UsedByPods = Mapping[tuple[str, str], Mapping[str, Used]]
"""(namespace, pod) → container → what it uses."""


class ResourceMetrics:
    """Answers requests for NodeMetrics and PodMetrics."""

    def __init__(self, store: Store, outbound: Outbound, clock: Clock) -> None:
        self._store, self._outbound, self._clock = store, outbound, clock
        self._turns = asyncio.Semaphore(MAX_NODES_AT_ONCE)

    async def answer(self, exchange: Exchange) -> Response | None:
        """Metrics; None when the request is about another group."""
        target = exchange.target
        if target is None or target.group != GROUP:
            return None
        row = next((r for r in METRICS if (r.version, r.plural) == (target.version, target.resource)), None)
        if row is None or target.subresource or not target.fits_scope(namespaced=row.namespaced):
            raise NotFound("the server could not find the requested resource")
        if target.verb not in ("get", "list"):
            raise MethodNotAllowed("the server does not allow this method on the requested resource")
        if row is NODE_METRICS:
            items = await self._nodes(target)
        else:
            items = await self._pods(target)
        if target.verb == "get":
            if not items:
                raise NotFound.of(row.plural, target.name, GROUP)
            return reply({"kind": row.kind, "apiVersion": row.api_version, **items[0]})
        chosen = _selected(exchange.request, items)
        return reply({"kind": f"{row.kind}List", "apiVersion": row.api_version, "metadata": {}, "items": chosen})

    async def _nodes(self, target: RequestTarget) -> list[JSON]:
        nodes = [node for node in self._objects("nodes") if target.name in ("", node["metadata"]["name"])]
        running = _by_node(self._objects("pods")) if any(map(_is_simulated, nodes)) else {}
        used = await asyncio.gather(*(self._used_on(node, running) for node in nodes))
        return [
            {**self._head(node), "usage": sum((u for pod in each.values() for u in pod.values()), Used()).quantities()}
            for node, each in zip(nodes, used, strict=True)
            if each is not None
        ]

    async def _pods(self, target: RequestTarget) -> list[JSON]:
        pods = [
            pod
            for pod in self._objects("pods", target.namespace)
            if target.name in ("", pod["metadata"]["name"]) and (pod.get("status") or {}).get("phase") == "Running"
        ]
        names = {(pod.get("spec") or {}).get("nodeName") for pod in pods}
        nodes = [node for node in self._objects("nodes") if node["metadata"]["name"] in names]
        used: dict[tuple[str, str], Mapping[str, Used]] = {}
        running = _by_node(pods)
        for each in await asyncio.gather(*(self._used_on(node, running) for node in nodes)):
            used |= each or {}
        found = []
        for pod in pods:
            containers = used.get((pod["metadata"]["namespace"], pod["metadata"]["name"]))
            if containers:
                listed = [{"name": name, "usage": each.quantities()} for name, each in containers.items()]
                found.append({**self._head(pod), "containers": listed})
        return found

    def _head(self, obj: JSON) -> JSON:
        now, metadata = timestamp(self._clock.now()), obj["metadata"]
        kept = {field: metadata[field] for field in ("name", "namespace", "labels") if metadata.get(field)}
        return {"metadata": {**kept, "creationTimestamp": now}, "timestamp": now, "window": WINDOW}

    def _objects(self, resource: str, namespace: str = "") -> list[JSON]:
        return [msgspec.json.decode(stored.raw) for stored in self._store.scan(resource, namespace)]

    async def _used_on(self, node: JSON, running: Mapping[str, Sequence[JSON]]) -> UsedByPods | None:
        """What the pods of a node use; None when the node does not answer. `running` are the pods of each node."""
        name = node["metadata"]["name"]
        if _is_simulated(node):
            return _simulated(running.get(name, ()))
        try:
            async with self._turns:
                host, port, scheme = kubelet_address(self._store, name)
                response = await self._outbound.fetch(
                    "GET",
                    f"{scheme}://{host}:{port}/stats/summary",
                    headers={NODE_HEADER: name},
                    context=self._outbound.kubelet_context if scheme == "https" else None,
                    seconds=SUMMARY_SECONDS,
                )
            return _from_summary(msgspec.json.decode(response.body)) if response.status == 200 else None
        except (ApiError, msgspec.DecodeError, KeyError, TypeError, ValueError, RecursionError):
            return None


def _is_simulated(node: JSON) -> bool:
    runtime = ((node.get("status") or {}).get("nodeInfo") or {}).get("containerRuntimeVersion", "")
    return str(runtime).startswith(f"{SIMULATED_RUNTIME}:")


def _by_node(pods: Iterable[JSON]) -> dict[str, list[JSON]]:
    found: dict[str, list[JSON]] = {}
    for pod in pods:
        if (pod.get("status") or {}).get("phase") == "Running":
            found.setdefault(str((pod.get("spec") or {}).get("nodeName")), []).append(pod)
    return found


def _simulated(pods: Iterable[JSON]) -> UsedByPods:
    return {
        (pod["metadata"]["namespace"], pod["metadata"]["name"]): {
            str(c.get("name")): _share((c.get("resources") or {}).get("requests") or {})
            for c in pod["spec"].get("containers") or []
        }
        for pod in pods
    }


def _from_summary(document: Any) -> UsedByPods:
    return {
        (pod["podRef"]["namespace"], pod["podRef"]["name"]): {
            c["name"]: Used(int(c["cpu"]["usageNanoCores"]), int(c["memory"]["workingSetBytes"]))
            for c in pod["containers"]
        }
        for pod in document["pods"]
    }


def _share(requests: Mapping[str, Any]) -> Used:
    try:
        cpu, memory = (parse_quantity(requests.get(name, 0)).nanos for name in ("cpu", "memory"))
    except QuantityError:
        return Used()
    return Used(int(cpu * SIMULATED_SHARE), int(memory * SIMULATED_SHARE) // 10**9)


def _selected(request: Request, items: Iterable[JSON]) -> Sequence[JSON]:
    text = request.param("labelSelector")
    if not text:
        return list(items)
    try:
        selector = parse_label_selector(text)
    except SelectorError as error:
        raise BadRequest(str(error)) from error
    return [item for item in items if selector.matches(item["metadata"].get("labels") or {})]
