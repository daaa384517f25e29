"""Who gets which nodes: filter, score and select, scheduler by scheduler."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from volcano.api.core import Node, Pod
from volcano.api.pods.amounts import amounts_of
from volcano.api.pods.requests import pod_requests
from volcano.controllers.sharding.settings import Policy, SchedulerShare, ShardingSettings


def divided(settings: ShardingSettings, nodes: Iterable[Node], pods: Mapping[str, list[Pod]]) -> dict[str, list[str]]:
    """The nodes of each scheduler. No node is given twice; those named first choose first."""
    free = {node.name: node for node in sorted(nodes, key=lambda node: node.name)}
    rates = {name: cpu_rate(node, pods.get(name, [])) for name, node in free.items()}
    answer: dict[str, list[str]] = {}
    for scheduler in settings.schedulers:
        chosen = _chosen(scheduler, list(free.values()), rates)
        answer[scheduler.name] = chosen
        for name in chosen:
            del free[name]
    return answer


def cpu_rate(node: Node, pods: Iterable[Pod]) -> float | None:
    """How much of a node's CPU its pods ask for, in hundredths; None if it does not say how much it has."""
    capacity = amounts_of(node.status.capacity).get("cpu")
    if capacity is None or not capacity:
        return None
    asked = sum(
        (pod_requests(pod.spec)["cpu"].nanos for pod in pods if _counts(pod) and "cpu" in pod_requests(pod.spec)), 0
    )
    return round(min(1.0, asked / capacity.nanos), 2)


def _counts(pod: Pod) -> bool:
    return not pod.is_finished and "kubernetes.io/config.mirror" not in pod.annotations


def _chosen(scheduler: SchedulerShare, nodes: list[Node], rates: Mapping[str, float | None]) -> list[str]:
    fitting = [n for n in nodes if all(_accepts(policy, rates[n.name]) for policy in scheduler.policies)]
    fitting.sort(key=lambda n: -sum(p.weight * _score(p, n, rates[n.name]) for p in scheduler.policies))
    for policy in scheduler.policies:
        if policy.name == "node-limit" and (most := int(policy.arguments.get("maxNodes") or 0)) > 0:
            fitting = fitting[:most]
    return [node.name for node in fitting]


def _accepts(policy: Policy, rate: float | None) -> bool:
    if policy.name != "allocation-rate":
        return True
    low, high = _range(policy)
    return rate is not None and low <= rate <= high


def _score(policy: Policy, node: Node, rate: float | None) -> float:
    if policy.name == "warmup":
        label = str(policy.arguments.get("warmupLabel") or "node.volcano.sh/warmup")
        return float(node.labels.get(label) == str(policy.arguments.get("warmupLabelValue") or "true"))
    if policy.name == "allocation-rate" and rate is not None:
        low, high = _range(policy)
        return (rate - low) / (high - low) if high > low else 1.0
    return 0.0


def _range(policy: Policy) -> tuple[float, float]:
    return float(policy.arguments.get("minCPUUtil") or 0), float(policy.arguments.get("maxCPUUtil") or 0)
