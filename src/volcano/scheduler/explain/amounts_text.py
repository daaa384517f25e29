"""Amounts as people read them: `4`, `500m`, `16Gi`; requests as `4 cpu, 1 nvidia.com/gpu`."""

from __future__ import annotations

from volcano.scheduler.commit.queues import quantities_from
from volcano.scheduler.model import EPSILON, PODS, Resources


def amount_text(amount: float, resource: str) -> str:
    return quantities_from(Resources({resource: max(amount, 0.0)})).get(resource, "0")


def request_text(request: Resources) -> str:
    amounts = sorted(quantities_from(request).items())
    asked = [f"{text} {name}" for name, text in amounts if name != PODS and request[name] >= EPSILON]
    return ", ".join(asked) or "room for a pod"
