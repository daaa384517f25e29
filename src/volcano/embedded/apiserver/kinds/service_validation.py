"""Validation of services: types, ports, selectors, addresses that stay."""

from __future__ import annotations

from typing import Any, Final

from volcano.api import field_errors as says
from volcano.api.errors import FieldError
from volcano.api.meta import JSON
from volcano.api.names import dns_label_problems, port_name_problems
from volcano.embedded.apiserver.kinds.metadata import label_errors

_IMMUTABLE: Final = "field is immutable"
_SERVICE_TYPES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")


def service_errors(obj: JSON, old: JSON | None) -> list[FieldError]:
    spec = obj.get("spec") or {}
    errors: list[FieldError] = []
    kind = spec.get("type") or "ClusterIP"
    if kind not in _SERVICE_TYPES:
        errors.append(says.not_supported("spec.type", kind, _SERVICE_TYPES))
    ports = spec.get("ports") or []
    if not isinstance(ports, list):
        return [says.type_invalid("spec.ports", ports, "must be a list")]
    if not ports and kind != "ExternalName" and spec.get("clusterIP") != "None":
        errors.append(says.required("spec.ports"))
    if kind == "ExternalName" and not spec.get("externalName"):
        errors.append(says.required("spec.externalName"))
    names: set[str] = set()
    for number, port in enumerate(ports):
        errors += _service_port(port, f"spec.ports[{number}]", needs_name=len(ports) > 1, names=names)
    selector = spec.get("selector")
    if isinstance(selector, dict) and all(isinstance(v, str) for v in selector.values()):
        errors += label_errors("spec.selector", selector)
    elif selector is not None:
        errors.append(says.type_invalid("spec.selector", selector, "must be a map of strings"))
    before = (old or {}).get("spec") or {}
    was_assigned = bool(before.get("clusterIP")) and before.get("type", "ClusterIP") != "ExternalName"
    if was_assigned and kind != "ExternalName" and spec.get("clusterIP") != before["clusterIP"]:
        errors.append(says.invalid("spec.clusterIP", spec.get("clusterIP"), _IMMUTABLE))
    return errors


def _service_port(port: Any, path: str, *, needs_name: bool, names: set[str]) -> list[FieldError]:
    if not isinstance(port, dict):
        return [says.type_invalid(path, port, "must be an object")]
    errors: list[FieldError] = []
    number, name = port.get("port") or 0, port.get("name") or ""
    if not name and needs_name:
        errors.append(says.required(f"{path}.name"))
    elif name:
        errors += [says.invalid(f"{path}.name", name, p) for p in dns_label_problems(str(name))]
        if name in names:
            errors.append(says.duplicate(f"{path}.name", name))
        names.add(name)
    if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= 65535:
        errors.append(says.invalid(f"{path}.port", number, "must be between 1 and 65535, inclusive"))
    protocol = port.get("protocol") or "TCP"
    if protocol not in _PROTOCOLS:
        errors.append(says.not_supported(f"{path}.protocol", protocol, _PROTOCOLS))
    target = port.get("targetPort") or number
    if isinstance(target, int) and not isinstance(target, bool) and not 1 <= target <= 65535:
        errors.append(says.invalid(f"{path}.targetPort", target, "must be between 1 and 65535, inclusive"))
    elif isinstance(target, str):
        errors += [says.invalid(f"{path}.targetPort", target, p) for p in port_name_problems(target)]
    return errors
