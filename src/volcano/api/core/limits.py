"""What limits and orders pods: PriorityClass, ResourceQuota, PodDisruptionBudget."""

from __future__ import annotations

from datetime import datetime

from volcano.api.meta import (
    JSON,
    Condition,
    LabelSelector,
    Model,
    Quantities,
    Resource,
)


class PriorityClass(Resource, frozen=True):
    value: int = 0
    global_default: bool = False
    preemption_policy: str | None = None
    description: str = ""


class ResourceQuotaSpec(Model, frozen=True):
    hard: Quantities | None = None
    scopes: list[str] = []
    scope_selector: JSON | None = None


class ResourceQuotaStatus(Model, frozen=True):
    hard: Quantities | None = None
    used: Quantities | None = None


class ResourceQuota(Resource, frozen=True):
    spec: ResourceQuotaSpec = ResourceQuotaSpec()
    status: ResourceQuotaStatus = ResourceQuotaStatus()


class PodDisruptionBudgetSpec(Model, frozen=True):
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    selector: LabelSelector | None = None


class PodDisruptionBudgetStatus(Model, frozen=True):
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    observed_generation: int = 0
    disrupted_pods: dict[str, datetime] | None = None
    conditions: list[Condition] = []


class PodDisruptionBudget(Resource, frozen=True):
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()
