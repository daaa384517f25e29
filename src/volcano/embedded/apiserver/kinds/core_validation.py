"""Validation of built-in kinds in Kubernetes' words: field paths and messages as its API server writes them.

Pods and pod templates are checked by api.pod_validation, CRDs by schemas.crd_validation, services, roles and webhooks
by modules of their own; the rest is here, a function per kind in one table. Metadata is checked by names.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any, Final

from volcano.api import field_errors as says
from volcano.api.errors import FieldError
from volcano.api.fields import Field
from volcano.api.meta import JSON
from volcano.api.names import (
    config_key_problems,
    percent_problems,
    qualified_name_problems,
)
from volcano.api.pods.validation import validate_pod_annotations, validate_pod_template
from volcano.api.pods.validation.labels import check_label_selector
from volcano.api.quantity import QuantityError, parse_quantity
from volcano.api.scheme import ResourceType
from volcano.embedded.apiserver.kinds.pod_shapes import pod_shape, shape_errors
from volcano.embedded.apiserver.kinds.rbac_validation import role_binding_errors, role_errors
from volcano.embedded.apiserver.kinds.service_validation import service_errors
from volcano.embedded.apiserver.kinds.webhook_validation import webhook_configuration_errors
from volcano.embedded.apiserver.schemas.crd.definition_validation import validate_crd, validate_crd_update

Validate = Callable[[JSON, JSON | None], list[FieldError]]

_IMMUTABLE: Final = "field is immutable"
_LARGEST_CONFIG: Final = 2**20
_POD_UPDATE: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def core_errors(row: ResourceType, obj: JSON, old: JSON | None, subresource: str = "") -> list[FieldError]:
    """All that is wrong with an object of a built-in kind, itself or as a change of the old one."""
    for part in ("spec", "status"):
        if not isinstance(obj.get(part, {}), dict | None):
            return [says.type_invalid(part, obj[part], "must be an object")]
    if subresource == "status":
        return _quantities(obj, ("status", "capacity"), ("status", "allocatable")) if row.qualified == "nodes" else []
    validate = _VALIDATORS.get(row.qualified)
    return validate(obj, old) if validate is not None else []


def quantity_errors(path: str, amounts: Any) -> list[FieldError]:
    """A map of quantities: each must be one, and none negative."""
    if amounts is None:
        return []
    if not isinstance(amounts, dict):
        return [says.type_invalid(path, amounts, "must be a map of quantities")]
    errors: list[FieldError] = []
    for name, amount in amounts.items():
        where = f"{path}[{name}]"
        errors += [says.invalid(where, name, problem) for problem in qualified_name_problems(name)]
        try:
            if parse_quantity(amount).nanos < 0:
                errors.append(says.invalid(where, amount, "must be greater than or equal to 0"))
        except (QuantityError, TypeError):
            errors.append(says.invalid(where, amount, QuantityError.MESSAGE))
    return errors


def _quantities(obj: JSON, *paths: tuple[str, ...]) -> list[FieldError]:
    errors: list[FieldError] = []
    for path in paths:
        found: Any = obj
        for part in path:
            found = found.get(part) if isinstance(found, dict) else None
        errors += quantity_errors(".".join(path), found)
    return errors


# ── pods ──


def _pod(obj: JSON, old: JSON | None) -> list[FieldError]:
    spec = obj.get("spec")
    if old is None:
        annotations = (obj.get("metadata") or {}).get("annotations") or {}
        errors = list(shape_errors(pod_shape(spec)))
        if any("kubernetes.io/" in key for key in annotations):
            errors += validate_pod_annotations(annotations, spec, "metadata.annotations")
        return errors
    if spec == old.get("spec"):
        return []
    if not isinstance(spec, dict):
        return [says.required("spec.containers")]
    return _pod_update(spec, old.get("spec") or {})


def _pod_update(spec: JSON, old: JSON) -> list[FieldError]:
    """Few fields of a pod may change once it exists."""
    errors: list[FieldError] = []
    for field in ("containers", "initContainers"):
        if len(spec.get(field) or []) != len(old.get(field) or []):
            errors.append(says.forbidden(f"spec.{field}", "pod updates may not add or remove containers"))
            return errors
    gates, had = _names(spec.get("schedulingGates")), _names(old.get("schedulingGates"))
    if not gates <= had:
        added = ", ".join(sorted(gates - had))
        errors.append(
            says.forbidden("spec.schedulingGates", f"only deletion is allowed, but found new scheduling gate '{added}'")
        )
    kept = [t for t in old.get("tolerations") or [] if t not in (spec.get("tolerations") or [])]
    if kept and not all(_only_seconds_differ(t, spec.get("tolerations") or []) for t in kept):
        errors.append(
            says.forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")
        )
    if _frozen_part(spec, old, gated=bool(had)) != _frozen_part(old, old, gated=bool(had)):
        errors.append(says.forbidden("spec", _POD_UPDATE))
    return errors


def _names(items: Any) -> set[str]:
    return {str(item.get("name")) for item in items or [] if isinstance(item, dict)}


def _only_seconds_differ(toleration: JSON, others: list[Any]) -> bool:
    wanted = {k: v for k, v in toleration.items() if k != "tolerationSeconds"}
    return any(
        {k: v for k, v in o.items() if k != "tolerationSeconds"} == wanted for o in others if isinstance(o, dict)
    )


def _frozen_part(spec: JSON, old: JSON, *, gated: bool) -> JSON:
    """What must not change: everything but the fields named in the message."""
    frozen = copy.deepcopy(spec)
    for field in ("tolerations", "activeDeadlineSeconds", "schedulingGates", "ephemeralContainers"):
        frozen.pop(field, None)
    grace = old.get("terminationGracePeriodSeconds")
    if isinstance(grace, int) and grace < 0 and spec.get("terminationGracePeriodSeconds") == 1:
        frozen["terminationGracePeriodSeconds"] = grace
    if gated:
        for field in ("nodeSelector", "affinity"):
            frozen.pop(field, None)
    for field in ("containers", "initContainers"):
        for container in frozen.get(field) or []:
            if isinstance(container, dict):
                container.pop("image", None)
    return frozen


# ── kinds with a pod template ──


def _workload(obj: JSON, old: JSON | None) -> list[FieldError]:
    spec = obj.get("spec") or {}
    errors = []
    replicas = spec.get("replicas")
    if isinstance(replicas, int) and replicas < 0:
        errors.append(says.invalid("spec.replicas", replicas, "must be greater than or equal to 0"))
    selector = spec.get("selector")
    if not isinstance(selector, dict):
        errors.append(says.required("spec.selector"))
    elif not (selector.get("matchLabels") or selector.get("matchExpressions")):
        what = str(obj.get("kind", "")).lower()
        errors.append(says.invalid("spec.selector", selector, f"empty selector is invalid for {what}"))
    else:
        errors += selector_errors("spec.selector", selector)
    template = spec.get("template")
    if not isinstance(template, dict):
        errors.append(says.required("spec.template"))
    else:
        labels = ((template.get("metadata") or {}).get("labels")) or {}
        wanted = selector.get("matchLabels") or {} if isinstance(selector, dict) else {}
        if any(labels.get(key) != value for key, value in wanted.items()):
            errors.append(
                says.invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")
            )
        errors += validate_pod_template(template, "spec.template")
    if old is not None and (old.get("spec") or {}).get("selector") != selector:
        errors.append(says.invalid("spec.selector", selector, _IMMUTABLE))
    return errors


def selector_errors(path: str, selector: JSON) -> list[FieldError]:
    place = Field(selector, path)
    check_label_selector(place)
    return place.errors


def _templated(path: tuple[str, ...]) -> Validate:
    def validate(obj: JSON, old: JSON | None) -> list[FieldError]:
        template: Any = obj
        for part in path:
            template = template.get(part) if isinstance(template, dict) else None
        if template is None:
            return [says.required(".".join(path))]
        return validate_pod_template(template, ".".join(path))

    return validate


# ── the rest of core ──


def _node(obj: JSON, old: JSON | None) -> list[FieldError]:
    errors = _quantities(obj, ("status", "capacity"), ("status", "allocatable"))
    for number, taint in enumerate((obj.get("spec") or {}).get("taints") or []):
        path = f"metadata.taints[{number}]"  # so says Kubernetes
        if not isinstance(taint, dict):
            errors.append(says.type_invalid(path, taint, "must be an object"))
            continue
        key, effect = taint.get("key") or "", taint.get("effect") or ""
        errors += [says.invalid(f"{path}.key", key, problem) for problem in qualified_name_problems(str(key))]
        if effect not in ("NoSchedule", "PreferNoSchedule", "NoExecute"):
            if not effect:
                errors.append(says.required(f"{path}.effect"))
            else:
                effects = ("NoSchedule", "PreferNoSchedule", "NoExecute")
                errors.append(says.not_supported(f"{path}.effect", effect, effects))
    before = ((old or {}).get("spec") or {}).get("providerID")
    if before and (obj.get("spec") or {}).get("providerID") != before:
        errors.append(
            says.forbidden("spec.providerID", 'node updates may not change providerID except from "" to valid')
        )
    return errors


def _priority_class(obj: JSON, old: JSON | None) -> list[FieldError]:
    errors: list[FieldError] = []
    name, value = obj["metadata"].get("name") or "", obj.get("value")
    known = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
    if name.startswith("system-") and name not in known:
        errors.append(
            says.forbidden(
                "metadata.name",
                "priority class names with 'system-' prefix are reserved for system use only. error: "
                f"{name} is not a known system priority class",
            )
        )
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        errors.append(says.type_invalid("value", value, "must be an integer"))
    elif isinstance(value, int) and value > 1_000_000_000 and known.get(name) != value:
        errors.append(says.forbidden("value", "maximum allowed value of a user defined priority is 1000000000"))
    policy = obj.get("preemptionPolicy")
    if policy is not None and policy not in ("PreemptLowerPriority", "Never"):
        errors.append(says.not_supported("preemptionPolicy", policy, ("Never", "PreemptLowerPriority")))
    if old is not None:
        if (old.get("value") or 0) != (value or 0):
            errors.append(says.forbidden("value", "may not be changed in an update."))
        if (old.get("preemptionPolicy") or "PreemptLowerPriority") != (policy or "PreemptLowerPriority"):
            errors.append(says.invalid("preemptionPolicy", policy, _IMMUTABLE))
    return errors


def _config(*fields: str) -> Validate:
    """ConfigMaps and Secrets: keys, size, immutability."""

    def validate(obj: JSON, old: JSON | None) -> list[FieldError]:
        errors: list[FieldError] = []
        size = 0
        for field in fields:
            entries = obj.get(field)
            if entries is None:
                continue
            if not isinstance(entries, dict) or not all(isinstance(v, str) for v in entries.values()):
                errors.append(says.type_invalid(field, entries, "must be a map of strings"))
                continue
            for key, value in entries.items():
                errors += [says.invalid(f"{field}[{key}]", key, problem) for problem in config_key_problems(key)]
                size += len(value)
        if size > _LARGEST_CONFIG:
            errors.append(says.too_long("", _LARGEST_CONFIG))
        if old is not None and old.get("immutable"):
            if not obj.get("immutable"):
                errors.append(says.forbidden("immutable", "field is immutable when `immutable` is set"))
            errors += [
                says.forbidden(field, "field is immutable when `immutable` is set")
                for field in fields
                if obj.get(field) != old.get(field)
            ]
        return errors

    return validate


def _secret(obj: JSON, old: JSON | None) -> list[FieldError]:
    errors = _config("data")(obj, old)
    if old is not None and old.get("type") != obj.get("type"):
        errors.append(says.invalid("type", obj.get("type"), _IMMUTABLE))
    return errors


def _quota(obj: JSON, old: JSON | None) -> list[FieldError]:
    return _quantities(obj, ("spec", "hard"))


def _budget(obj: JSON, old: JSON | None) -> list[FieldError]:
    spec = obj.get("spec") or {}
    errors: list[FieldError] = []
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        errors.append(says.invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set"))
    for field in ("minAvailable", "maxUnavailable"):
        value = spec.get(field)
        if isinstance(value, str):
            errors += [says.invalid(f"spec.{field}", value, problem) for problem in percent_problems(value)]
        elif isinstance(value, int) and value < 0:
            errors.append(says.invalid(f"spec.{field}", value, "must be greater than or equal to 0"))
    return errors + selector_errors("spec.selector", spec.get("selector") or {})


def _crd(obj: JSON, old: JSON | None) -> list[FieldError]:
    return list(validate_crd(obj) if old is None else [*validate_crd(obj), *validate_crd_update(obj, old)])


_VALIDATORS: Final[Mapping[str, Validate]] = {
    "pods": _pod,
    "nodes": _node,
    "services": service_errors,
    "configmaps": _config("data", "binaryData"),
    "secrets": _secret,
    "resourcequotas": _quota,
    "podtemplates": _templated(("template",)),
    "replicationcontrollers": _templated(("spec", "template")),
    "deployments.apps": _workload,
    "replicasets.apps": _workload,
    "statefulsets.apps": _workload,
    "daemonsets.apps": _workload,
    "jobs.batch": _templated(("spec", "template")),
    "cronjobs.batch": _templated(("spec", "jobTemplate", "spec", "template")),
    "poddisruptionbudgets.policy": _budget,
    "priorityclasses.scheduling.k8s.io": _priority_class,
    "roles.rbac.authorization.k8s.io": role_errors,
    "clusterroles.rbac.authorization.k8s.io": role_errors,
    "rolebindings.rbac.authorization.k8s.io": role_binding_errors,
    "clusterrolebindings.rbac.authorization.k8s.io": role_binding_errors,
    "customresourcedefinitions.apiextensions.k8s.io": _crd,
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": webhook_configuration_errors,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": webhook_configuration_errors,
}
