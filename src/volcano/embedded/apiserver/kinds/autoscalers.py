"""HorizontalPodAutoscalers: one kind in two versions, stored as autoscaling/v2.

v1 has a target for CPU only; what else a v2 object has, v1 shows in annotations, as Kubernetes does.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from volcano.api import field_errors as says
from volcano.api.copies import copied
from volcano.api.errors import FieldError
from volcano.api.meta import JSON
from volcano.api.names import path_segment_problems
from volcano.api.quantity import QuantityError, parse_quantity
from volcano.api.scheme import ResourceType
from volcano.embedded.apiserver.kinds.strategy import Strategy

STORED_VERSION: Final = "autoscaling/v2"
ANNOTATIONS: Final = "autoscaling.alpha.kubernetes.io/"
SPEC_IN_ANNOTATIONS: Final = ("metrics", "behavior")
STATUS_IN_ANNOTATIONS: Final = {"currentMetrics": "current-metrics", "conditions": "conditions"}
METRIC_SOURCES: Final = {
    "Resource": "resource",
    "ContainerResource": "containerResource",
    "Pods": "pods",
    "Object": "object",
    "External": "external",
}
TARGET_TYPES: Final = ("Utilization", "Value", "AverageValue")
MAX_PERIOD_SECONDS: Final = 1800
MAX_STABILIZATION_SECONDS: Final = 3600


class Autoscalers(Strategy):
    def __init__(self, row: ResourceType) -> None:
        super().__init__(row)
        self.has_stored_form = row.api_version == STORED_VERSION

    def name_problems(self, name: str) -> list[str]:
        return path_segment_problems(name)

    def from_stored(self, obj: JSON) -> JSON:
        return obj if self.has_stored_form else _as_v1(obj)

    def to_stored(self, obj: JSON) -> JSON:
        return obj if self.has_stored_form else _as_v2(obj)

    def validate(self, obj: JSON) -> list[FieldError]:
        spec = (obj if self.has_stored_form else _as_v2(copied(obj))).get("spec") or {}
        return [*_replica_errors(spec), *_target_errors(spec), *_metrics_errors(spec), *_behavior_errors(spec)]


# -- between the versions -------------------------------------------------------------------------------------------
def _as_v1(obj: JSON) -> JSON:
    obj["apiVersion"] = "autoscaling/v1"
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    annotations = dict(obj["metadata"].get("annotations") or {})
    cpu = next((each for each in spec.get("metrics") or [] if _is_cpu_utilization(each)), None)
    if cpu is not None:
        spec["targetCPUUtilizationPercentage"] = cpu["resource"]["target"]["averageUtilization"]
    others = [each for each in spec.pop("metrics", None) or [] if each is not cpu]
    kept = {"metrics": others, "behavior": spec.pop("behavior", None)}
    shown = next(
        (e for e in status.get("currentMetrics") or [] if (e.get("resource") or {}).get("name") == "cpu"), None
    )
    if shown is not None and "averageUtilization" in shown["resource"]["current"]:
        status["currentCPUUtilizationPercentage"] = shown["resource"]["current"]["averageUtilization"]
    kept |= {name: status.pop(field, None) for field, name in STATUS_IN_ANNOTATIONS.items()}
    for name, value in kept.items():
        if value:
            annotations[ANNOTATIONS + name] = msgspec.json.encode(value).decode()
    if annotations:
        obj["metadata"]["annotations"] = annotations
    return obj


def _as_v2(obj: JSON) -> JSON:
    obj["apiVersion"] = STORED_VERSION
    annotations = dict((obj.get("metadata") or {}).get("annotations") or {})
    spec, status = obj.setdefault("spec", {}), obj.get("status")
    utilization = spec.pop("targetCPUUtilizationPercentage", None)
    others = _decoded(annotations.pop(ANNOTATIONS + "metrics", ""))
    metrics = list(others) if isinstance(others, list) else []
    if utilization is not None or not metrics:
        target = {"type": "Utilization", "averageUtilization": 80 if utilization is None else utilization}
        metrics.insert(0, {"type": "Resource", "resource": {"name": "cpu", "target": target}})
    spec["metrics"] = metrics
    behavior = _decoded(annotations.pop(ANNOTATIONS + "behavior", ""))
    if isinstance(behavior, dict):
        spec["behavior"] = behavior
    for field, name in STATUS_IN_ANNOTATIONS.items():
        value = _decoded(annotations.pop(ANNOTATIONS + name, ""))
        if isinstance(status, dict) and isinstance(value, list):
            status[field] = value
    if isinstance(status, dict):
        status.pop("currentCPUUtilizationPercentage", None)
    if "annotations" in (obj.get("metadata") or {}):
        obj["metadata"]["annotations"] = annotations
        if not annotations:
            del obj["metadata"]["annotations"]
    return obj


def _is_cpu_utilization(metric: JSON) -> bool:
    source = metric.get("resource") or {}
    return source.get("name") == "cpu" and (source.get("target") or {}).get("averageUtilization") is not None


def _decoded(text: str) -> Any:
    try:
        return msgspec.json.decode(text) if text else None
    except (msgspec.DecodeError, RecursionError):
        return None


# -- validation -----------------------------------------------------------------------------------------------------
def _replica_errors(spec: JSON) -> list[FieldError]:
    least, most = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    errors = []
    if least is not None and least < 1:
        errors.append(says.invalid("spec.minReplicas", least, "must be greater than or equal to 1"))
    if most < 1:
        errors.append(says.invalid("spec.maxReplicas", most, "must be greater than 0"))
    if least is not None and most < least:
        errors.append(says.invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`"))
    return errors


def _target_errors(spec: JSON) -> list[FieldError]:
    reference, errors = spec.get("scaleTargetRef") or {}, []
    for field in ("kind", "name"):
        path, value = f"spec.scaleTargetRef.{field}", reference.get(field)
        if not value:
            errors.append(says.required(path))
        else:
            errors += [says.invalid(path, value, problem) for problem in path_segment_problems(value)]
    return errors


def _metrics_errors(spec: JSON) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, metric in enumerate(spec.get("metrics") or []):
        path, kind = says.item("spec.metrics", index), metric.get("type")
        if not kind:
            errors.append(says.required(f"{path}.type", "must specify a metric source type"))
            continue
        if kind not in METRIC_SOURCES:
            errors.append(says.not_supported(f"{path}.type", kind, sorted(METRIC_SOURCES)))
            continue
        field = METRIC_SOURCES[kind]
        if metric.get(field) is None:
            errors.append(says.required(f"{path}.{field}", "must populate information for the given metric source"))
        elif kind in ("Resource", "ContainerResource"):
            errors += _resource_errors(f"{path}.{field}", metric[field], has_container=kind == "ContainerResource")
    return errors


def _resource_errors(path: str, source: JSON, *, has_container: bool) -> list[FieldError]:
    errors, target = [], source.get("target") or {}
    if not source.get("name"):
        errors.append(says.required(f"{path}.name", "must specify a resource name"))
    if has_container and not source.get("container"):
        errors.append(says.required(f"{path}.container", "must specify a container"))
    if not target.get("type"):
        errors.append(says.required(f"{path}.target.type", "must specify a metric target type"))
    elif target["type"] not in TARGET_TYPES:
        errors.append(
            says.invalid(f"{path}.target.type", target["type"], "must be either Utilization, Value, or AverageValue")
        )
    utilization, value = target.get("averageUtilization"), target.get("averageValue")
    if utilization is None and value is None:
        detail = "must set either a target raw value or a target utilization"
        errors.append(says.required(f"{path}.target.averageUtilization", detail))
    if utilization is not None and utilization < 1:
        errors.append(says.invalid(f"{path}.target.averageUtilization", utilization, "must be greater than 0"))
    if utilization is not None and value is not None:
        detail = "may not set both a target raw value and a target utilization"
        errors.append(says.forbidden(f"{path}.target.averageValue", detail))
    if value is not None and not _is_positive(value):
        errors.append(says.invalid(f"{path}.target.averageValue", value, "must be positive"))
    return errors


def _behavior_errors(spec: JSON) -> list[FieldError]:
    errors: list[FieldError] = []
    for direction in ("scaleUp", "scaleDown"):
        rules, path = (spec.get("behavior") or {}).get(direction), f"spec.behavior.{direction}"
        if not rules:
            continue
        window = rules.get("stabilizationWindowSeconds")
        if window is not None and not 0 <= window <= MAX_STABILIZATION_SECONDS:
            detail = (
                "must be greater than or equal to zero"
                if window < 0
                else f"must be less than or equal to {MAX_STABILIZATION_SECONDS}"
            )
            errors.append(says.invalid(f"{path}.stabilizationWindowSeconds", window, detail))
        choice = rules.get("selectPolicy")
        if choice is not None and choice not in ("Max", "Min", "Disabled"):
            errors.append(says.not_supported(f"{path}.selectPolicy", choice, ("Disabled", "Max", "Min")))
        if not rules.get("policies"):
            errors.append(says.required(f"{path}.policies", "must specify at least one Policy"))
        for index, policy in enumerate(rules.get("policies") or []):
            errors += _policy_errors(says.item(f"{path}.policies", index), policy)
    return errors


def _policy_errors(path: str, policy: JSON) -> list[FieldError]:
    errors = []
    if policy.get("type") not in ("Pods", "Percent"):
        errors.append(says.not_supported(f"{path}.type", policy.get("type") or "", ("Percent", "Pods")))
    if (policy.get("value") or 0) <= 0:
        errors.append(says.invalid(f"{path}.value", policy.get("value") or 0, "must be greater than zero"))
    period = policy.get("periodSeconds") or 0
    if period <= 0:
        errors.append(says.invalid(f"{path}.periodSeconds", period, "must be greater than zero"))
    elif period > MAX_PERIOD_SECONDS:
        errors.append(
            says.invalid(f"{path}.periodSeconds", period, f"must be less than or equal to {MAX_PERIOD_SECONDS}")
        )
    return errors


def _is_positive(value: Any) -> bool:
    try:
        return parse_quantity(value).nanos > 0
    except QuantityError:
        return False
