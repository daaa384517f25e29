"""How many nodes are left after each condition a pod makes: selector, taints, size, free room. From API objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from volcano.api.meta import JSON
from volcano.api.quantity import Quantity, parse_quantity
from volcano.api.selectors import Requirement

ZERO = Quantity(0)
Amounts = dict[str, Quantity]


class Stage(msgspec.Struct, frozen=True):
    """A condition, and the nodes that are left after it."""

    condition: str
    nodes: int
    causes: dict[str, int] = {}


class Funnel(msgspec.Struct, frozen=True):
    """All conditions in order. `holds`: pods the suitable nodes could hold when empty; `fits_now`: as they are."""

    stages: list[Stage]
    holds: int
    fits_now: int

    def __str__(self) -> str:
        return " → ".join(f"{stage.nodes} {stage.condition}" for stage in self.stages)

    @property
    def first_empty(self) -> Stage | None:
        return next((stage for stage in self.stages if stage.nodes == 0), None)


def funnel(spec: JSON, nodes: Sequence[JSON], used: Mapping[str, Amounts]) -> Funnel:
    """What becomes of the nodes for a pod spec; `used` is what pods on each node request."""
    wanted = pod_requests(spec)
    left = list(nodes)
    stages = [Stage("node" if len(left) == 1 else "nodes", len(left))]
    if has_selector(spec):
        left = [node for node in left if matches_selector(spec, node)]
        stages.append(Stage("match the selector and affinity", len(left)))
    usable = [node for node in left if not (why_unusable(spec, node))]
    if len(usable) != len(left):
        causes = _counted(why_unusable(spec, node) for node in left)
        stages.append(Stage("are ready and their taints tolerated", len(usable), causes))
    left = usable
    large = [node for node in left if _covers(_allocatable(node), wanted)]
    stages.append(Stage(f"have {_said(wanted)}", len(large), _lacking(left, wanted, lambda n: _allocatable(n))))
    free = [node for node in large if _covers(_free(node, used), wanted)]
    stages.append(Stage("have it free", len(free), _lacking(large, wanted, lambda n: _free(n, used))))
    holds = sum(_times(_allocatable(node), wanted) for node in large)
    return Funnel(stages, holds, sum(_times(_free(node, used), wanted) for node in free))


def pod_requests(spec: JSON) -> Amounts:
    """What one pod needs: containers and sidecars summed, the largest init container if it is more, overhead."""
    total: Amounts = {}
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.get("containers") or ():
        _add(total, _requests(container))
    for container in spec.get("initContainers") or ():
        needs = _requests(container)
        if container.get("restartPolicy") == "Always":
            _add(sidecars, needs)
            _raise(peak, sidecars)
        else:
            _raise(peak, _sum(sidecars, needs))
    _add(total, sidecars)
    _raise(total, peak)
    _add(total, {name: parse_quantity(amount) for name, amount in (spec.get("overhead") or {}).items()})
    return {name: amount for name, amount in total.items() if amount}


def used_by_pods(pods: Iterable[JSON]) -> dict[str, Amounts]:
    """What unfinished pods request on each node."""
    used: dict[str, Amounts] = {}
    for pod in pods:
        node = (pod.get("spec") or {}).get("nodeName")
        if node and (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed"):
            amounts = used.setdefault(node, {})
            _add(amounts, pod_requests(pod["spec"]))
            _add(amounts, {"pods": parse_quantity(1)})
    return used


# -- conditions -----------------------------------------------------------------------------------------------------
def has_selector(spec: JSON) -> bool:
    affinity = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(REQUIRED)
    return bool(spec.get("nodeSelector") or affinity)


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def matches_selector(spec: JSON, node: JSON) -> bool:
    labels = node["metadata"].get("labels") or {}
    if any(labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
        return False
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(REQUIRED)
    if not required:
        return True
    return any(_term_matches(term, node, labels) for term in required.get("nodeSelectorTerms") or ())


def _term_matches(term: JSON, node: JSON, labels: Mapping[str, str]) -> bool:
    expressions, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
    if not expressions and not fields:
        return False
    name = {"metadata.name": node["metadata"]["name"]}
    return all(_requirement(e).matches(labels) for e in expressions) and all(
        _requirement(f).matches(name) for f in fields
    )


def _requirement(expression: JSON) -> Requirement:
    return Requirement(expression.get("key", ""), expression.get("operator", ""), tuple(expression.get("values") or ()))


def why_unusable(spec: JSON, node: JSON) -> str:
    """Why nothing new may go there; empty when it may."""
    conditions = (node.get("status") or {}).get("conditions") or ()
    if any(each.get("type") == "Ready" and each.get("status") != "True" for each in conditions):
        return "not ready"
    if (node.get("spec") or {}).get("unschedulable"):
        return "unschedulable"
    for taint in (node.get("spec") or {}).get("taints") or ():
        if taint.get("effect") in ("NoSchedule", "NoExecute") and not _is_tolerated(spec, taint):
            return f"taint {taint.get('key')}"
    return ""


def _is_tolerated(spec: JSON, taint: JSON) -> bool:
    for each in spec.get("tolerations") or ():
        if each.get("effect") and each["effect"] != taint.get("effect"):
            continue
        if each.get("key") and each["key"] != taint.get("key"):
            continue
        if (each.get("operator") or "Equal") == "Exists":
            return True
        if each.get("key") and (each.get("value") or "") == (taint.get("value") or ""):
            return True
    return False


# -- amounts ----------------------------------------------------------------------------------------------------------
def _requests(container: JSON) -> Amounts:
    resources = container.get("resources") or {}
    amounts = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return {name: parse_quantity(amount) for name, amount in amounts.items()}


def _allocatable(node: JSON) -> Amounts:
    status = node.get("status") or {}
    return {name: parse_quantity(amount) for name, amount in (status.get("allocatable") or {}).items()}


def _free(node: JSON, used: Mapping[str, Amounts]) -> Amounts:
    taken = used.get(node["metadata"]["name"], {})
    return {name: amount - taken.get(name, ZERO) for name, amount in _allocatable(node).items()}


def _covers(have: Amounts, wanted: Amounts) -> bool:
    if "pods" in have and have["pods"].nanos < 10**9:
        return False
    return all(have.get(name, ZERO) >= amount for name, amount in wanted.items())


def _times(have: Amounts, wanted: Amounts) -> int:
    """How many pods of this size fit into an amount."""
    limits = [have.get(name, ZERO).nanos // amount.nanos for name, amount in wanted.items()]
    if "pods" in have:
        limits.append(have["pods"].value)
    return max(0, min(limits)) if limits else 0


def _lacking(nodes: Iterable[JSON], wanted: Amounts, amounts: Any) -> dict[str, int]:
    """Per resource, on how many nodes there is not enough of it."""
    lacks: list[str] = []
    for node in nodes:
        have = amounts(node)
        lacks += [f"not enough {name}" for name, amount in wanted.items() if have.get(name, ZERO) < amount]
        if "pods" in have and have["pods"].nanos < 10**9:
            lacks.append("no room for another pod")
    return _counted(lacks)


def _counted(reasons: Iterable[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for reason in filter(None, reasons):
        counts[reason] = counts.get(reason, 0) + 1
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _said(wanted: Amounts) -> str:
    return ", ".join(f"{amount} {name}" for name, amount in sorted(wanted.items())) or "room for a pod"


def _add(total: Amounts, more: Mapping[str, Quantity]) -> None:
    for name, amount in more.items():
        total[name] = total[name] + amount if name in total else amount


def _sum(one: Amounts, other: Amounts) -> Amounts:
    total = dict(one)
    _add(total, other)
    return total


def _raise(total: Amounts, least: Amounts) -> None:
    for name, amount in least.items():
        total[name] = max(total.get(name, ZERO), amount)
