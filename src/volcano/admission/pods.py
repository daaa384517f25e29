"""/pods/mutate and /pods/validate: resource groups, the queue's gate, and disruption budgets on annotations."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from volcano.admission.review import (
    ALLOWED,
    FieldChange,
    Notice,
    Reader,
    ResourceGroup,
    ReviewAnswer,
    Settings,
    change,
    read,
    section,
)
from volcano.api.core import Pod
from volcano.api.jobs.estimates import annotation_problem
from volcano.api.meta import JSON
from volcano.machinery.admission import Attributes

GATE: Final = "scheduling.volcano.sh/queue-allocation-gate"
GROUP_ANNOTATION: Final = "volcano.sh/resource-group"
MIN_AVAILABLE: Final = "volcano.sh/jdb-min-available"
MAX_UNAVAILABLE: Final = "volcano.sh/jdb-max-unavailable"
NOTICE_REASON: Final = "Admit"
MAX_CONFIGURATION_BYTES: Final = 1024 * 1024
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,18}")


class ConfigurationError(ValueError):
    """The pod webhook's configuration file cannot be parsed."""


def parse_resource_groups(text: str) -> tuple[ResourceGroup, ...]:
    """The configuration file; one that is empty, or all comments, has no groups."""
    if len(text) > MAX_CONFIGURATION_BYTES:
        raise ConfigurationError(f"the configuration is over {MAX_CONFIGURATION_BYTES} bytes")
    from volcano.api.bounded_yaml import BoundedYamlError, load_yaml  # only configurations and annotations need it

    try:
        document = load_yaml(text)
        groups = (document or {}).get("resourceGroups") or []
        return tuple(_group(entry) for entry in groups)
    except (BoundedYamlError, AttributeError, TypeError, msgspec.ValidationError) as error:
        raise ConfigurationError(f"the configuration cannot be read: {error}") from error


def mutate_pod(attributes: Attributes, _reader: Reader, settings: Settings) -> ReviewAnswer:
    if settings.resource_groups is None:
        return ALLOWED
    pod = read(Pod, attributes.object)
    if isinstance(pod, ReviewAnswer):
        return pod
    spec = section(attributes.object, "spec")
    changes = _gate(pod, spec) if settings.gates_pods else []
    namespace = pod.namespace or attributes.namespace
    group = next((g for g in settings.resource_groups if _matches(g, pod.annotations, namespace)), None)
    if group is not None:
        changes += _group_changes(group, spec)
    return ReviewAnswer(changes=tuple(changes)) if changes else ALLOWED


def validate_pod(attributes: Attributes, _reader: Reader, settings: Settings) -> ReviewAnswer:
    pod = read(Pod, attributes.object)
    if isinstance(pod, ReviewAnswer):
        return pod
    if pod.spec.scheduler_name not in settings.scheduler_names:
        return ALLOWED
    given = [key for key in (MIN_AVAILABLE, MAX_UNAVAILABLE) if key in pod.annotations]
    for key in given:
        problem = budget_problem(key, pod.annotations[key])
        if problem:
            return ReviewAnswer(denial=problem, notices=(Notice(NOTICE_REASON, problem),))
    if len(given) > 1:
        return ReviewAnswer(denial=f"not allow configure multiple annotations {given} at same time")
    return ReviewAnswer(denial=annotation_problem(pod.annotations))


def budget_problem(key: str, value: str) -> str:
    """A positive number of pods, or a part between 1% and 99%."""
    if _INTEGER.fullmatch(value):
        return "" if int(value) > 0 else f"invalid value {value!r} for {key}: it must be a positive integer"
    if value.endswith("%") and _INTEGER.fullmatch(value[:-1]):
        if 1 <= int(value[:-1]) <= 99:
            return ""
        return f"invalid value {value!r} for {key}: it must be a valid percentage which between 1% ~ 99%"
    return f"invalid value {value!r} for {key}: it is neither an integer nor a percentage"


def _gate(pod: Pod, spec: JSON) -> list[FieldChange]:
    if pod.annotations.get(GATE) != "true" or any(gate.name == GATE for gate in pod.spec.scheduling_gates):
        return []
    if spec.get("schedulingGates"):
        return [FieldChange(("spec", "schedulingGates"), {"name": GATE}, appends=True)]
    return [change("spec", "schedulingGates", value=[{"name": GATE}])]


def _group_changes(group: ResourceGroup, spec: JSON) -> list[FieldChange]:
    changes = []
    if group.labels:
        changes.append(change("spec", "nodeSelector", value=(spec.get("nodeSelector") or {}) | group.labels))
    affinity = _affinity(group.affinity)
    if affinity is not None and not spec.get("affinity"):
        changes.append(change("spec", "affinity", value=affinity))
    if group.tolerations:
        tolerations = [*(spec.get("tolerations") or ()), *group.tolerations]
        changes.append(change("spec", "tolerations", value=tolerations))
    if group.scheduler_name:
        changes.append(change("spec", "schedulerName", value=group.scheduler_name))
    return changes


def _affinity(text: str) -> JSON | None:
    try:
        found = msgspec.json.decode(text) if text else None
    except (msgspec.DecodeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _matches(group: ResourceGroup, annotations: dict[str, str], namespace: str) -> bool:
    if group.key == "namespace":
        return namespace in group.values
    if group.key not in ("annotation", ""):
        return False
    if any(annotations.get(key) == value for text in group.values for key, value in _pairs(text)):
        return True
    return not group.key and bool(group.name) and annotations.get(GROUP_ANNOTATION) == group.name


def _pairs(text: str) -> list[tuple[str, str]]:
    """`key: value` as YAML; anything else names nothing."""
    from volcano.api.bounded_yaml import TEXT_LOADER, BoundedYamlError, load_yaml

    try:
        found = load_yaml(text, loader=TEXT_LOADER)
    except BoundedYamlError:
        return []
    return [(str(key), str(value)) for key, value in found.items()] if isinstance(found, dict) else []


def _group(entry: Any) -> ResourceGroup:
    target = entry.get("object") or {}
    return msgspec.convert(
        {
            "name": entry.get("resourceGroup") or "",
            "key": target.get("key") or "",
            "values": [str(value) for value in target.get("value") or ()],
            "scheduler_name": entry.get("schedulerName") or "",
            "tolerations": entry.get("tolerations") or [],
            "labels": entry.get("labels") or {},
            "affinity": entry.get("affinity") or "",
        },
        ResourceGroup,
    )
