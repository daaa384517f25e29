"""Services: validation, and their ready endpoints; their addresses are assigned by service_addresses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from volcano.api import field_errors as says
from volcano.api.errors import FieldError, ServiceUnavailable
from volcano.api.meta import JSON
from volcano.api.names import dns_label_problems, ip_problems, port_name_problems
from volcano.api.service_network import HEADLESS
from volcano.embedded.apiserver.kinds.metadata import label_errors
from volcano.embedded.apiserver.kinds.service_addresses import (
    TYPES_WITH_NODE_PORTS,
    assign_addresses,
    carry_addresses_over,
)
from volcano.embedded.apiserver.kinds.strategy import (
    IMMUTABLE,
    AllocationContext,
    ProxyAddress,
    Strategy,
    existing_object,
)
from volcano.embedded.apiserver.store.contract import ObjectKey, Store

SERVICES: Final = "services"
ENDPOINTS: Final = "endpoints"
_SERVICE_TYPES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")


class Services(Strategy):
    has_generation = False
    selectable_fields: Mapping[str, str] = {"spec.clusterIP": "", "spec.type": ""}
    initial_status = {"loadBalancer": {}}

    def name_problems(self, name: str) -> list[str]:
        return dns_label_problems(name)

    def validate(self, obj: JSON) -> list[FieldError]:
        return _spec_errors(obj.get("spec") or {})

    def validate_update(self, obj: JSON, old: JSON) -> list[FieldError]:
        spec, before = obj.get("spec") or {}, old.get("spec") or {}
        errors = self.validate(obj)
        is_external = (spec.get("type") or "ClusterIP") == "ExternalName"
        was_assigned = bool(before.get("clusterIP")) and before.get("type", "ClusterIP") != "ExternalName"
        if was_assigned and not is_external and spec.get("clusterIP") != before["clusterIP"]:
            errors.append(says.invalid("spec.clusterIP", spec.get("clusterIP"), IMMUTABLE))
        return errors

    def allocate(self, obj: JSON, old: JSON | None, context: AllocationContext) -> None:
        assign_addresses(context.addresses, obj, old)

    def prepare_update(self, obj: JSON, old: JSON) -> None:
        if isinstance(obj.get("spec"), dict):
            carry_addresses_over(obj["spec"], old.get("spec") or {})

    def proxy_address(self, store: Store, namespace: str, name: str, port: str) -> ProxyAddress:
        """The first ready endpoint of the service's port, which is given by name or number; without one, its first."""
        service = existing_object(store, ObjectKey(SERVICES, namespace, name))
        ports = (service.get("spec") or {}).get("ports") or []
        wanted = next((p for p in ports if port in ("", p.get("name"), str(p.get("port")))), None)
        if wanted is None:
            raise ServiceUnavailable(f'no service port "{port}" found for service "{name}"')  # as Kubernetes answers it
        host, found = ready_endpoint(store, namespace, name, wanted.get("name") or "")
        scheme = "https" if (wanted.get("appProtocol") or "").endswith("https") else "http"
        return ProxyAddress(host, found, scheme)


def ready_endpoint(store: Store, namespace: str, name: str, port_name: str) -> tuple[str, int]:
    """Address and port of the first ready endpoint of a service's named port."""
    stored = store.find(ObjectKey(ENDPOINTS, namespace, name))
    endpoints: JSON = msgspec.json.decode(stored.raw) if stored else {}
    for subset in endpoints.get("subsets") or []:
        for offered in subset.get("ports") or []:
            if subset.get("addresses") and (offered.get("name") or "") == port_name:
                return subset["addresses"][0]["ip"], int(offered["port"])
    raise ServiceUnavailable(f'no endpoints available for service "{name}"')


def _spec_errors(spec: JSON) -> list[FieldError]:
    errors: list[FieldError] = []
    kind = spec.get("type") or "ClusterIP"
    if kind not in _SERVICE_TYPES:
        errors.append(says.not_supported("spec.type", kind, _SERVICE_TYPES))
    ports = spec.get("ports") or []
    if not isinstance(ports, list):
        return [says.type_invalid("spec.ports", ports, "must be a list")]
    if not ports and kind != "ExternalName" and spec.get("clusterIP") != HEADLESS:
        errors.append(says.required("spec.ports"))
    errors += _address_errors(spec, kind)
    if kind == "ExternalName" and not spec.get("externalName"):
        errors.append(says.required("spec.externalName"))
    names: set[str] = set()
    for number, port in enumerate(ports):
        errors += _service_port(port, f"spec.ports[{number}]", needs_name=len(ports) > 1, names=names)
        if kind not in TYPES_WITH_NODE_PORTS and isinstance(port, dict) and port.get("nodePort"):
            path = f"spec.ports[{number}].nodePort"
            errors.append(says.forbidden(path, f"may not be used when `type` is '{kind}'"))
    selector = spec.get("selector")
    if isinstance(selector, dict) and all(isinstance(v, str) for v in selector.values()):
        errors += label_errors("spec.selector", selector)
    elif selector is not None:
        errors.append(says.type_invalid("spec.selector", selector, "must be a map of strings"))
    return errors


def _address_errors(spec: JSON, kind: str) -> list[FieldError]:
    """What is wrong with the addresses that a service names; whether they are free is known when they are assigned."""
    first, listed = spec.get("clusterIP") or "", spec.get("clusterIPs") or []
    if not first:
        return (
            [says.invalid("spec.clusterIPs", listed, "must be empty when `clusterIP` is not specified")]
            if listed
            else []
        )
    if kind == "ExternalName":
        return [says.forbidden("spec.clusterIPs", "may not be set for ExternalName services")]
    if listed and listed[0] != first:
        return [says.invalid("spec.clusterIPs", listed, "first value must match `clusterIP`")]
    if first == HEADLESS:
        if kind in TYPES_WITH_NODE_PORTS:
            return [says.invalid("spec.clusterIPs[0]", first, f"may not be set to 'None' for {kind} services")]
        return []
    return [says.invalid("spec.clusterIPs[0]", first, problem) for problem in ip_problems(first)]


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
