"""APIServices: their validation, and the condition of those that this server answers itself.

Requests for the others are passed on by aggregation; whether they answer is found out by upkeep.api_service_status.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from volcano.api import field_errors as says
from volcano.api.errors import FieldError
from volcano.api.meta import JSON
from volcano.api.names import subdomain_problems
from volcano.embedded.apiserver.kinds.strategy import AllocationContext, Strategy

API_SERVICES: Final = "apiservices.apiregistration.k8s.io"
AVAILABLE: Final = "Available"
MAX_GROUP_PRIORITY: Final = 20_000
MAX_VERSION_PRIORITY: Final = 1_000
_DEFAULT_PORT: Final = 443


class ApiServices(Strategy):
    has_generation = False

    def apply_defaults(self, obj: JSON) -> None:
        super().apply_defaults(obj)
        service = _service(obj)
        if service and service.get("port") is None:
            service["port"] = _DEFAULT_PORT

    def validate(self, obj: JSON) -> list[FieldError]:
        return list(_errors(obj))

    def allocate(self, obj: JSON, old: JSON | None, context: AllocationContext) -> None:
        """A service that names no Service is answered here, so it is available from the start."""
        if _service(obj) is None and (old is None or _service(old) is not None):
            message = "Local APIServices are always available"
            set_available(obj, is_available=True, reason="Local", message=message, now=context.timestamp())


def _service(obj: Mapping[str, Any]) -> JSON | None:
    service = (obj.get("spec") or {}).get("service")
    return service if isinstance(service, dict) else None


def set_available(obj: JSON, *, is_available: bool, reason: str, message: str, now: str) -> None:
    """Set the condition; its time stays while its status does."""
    status = obj["status"] if isinstance(obj.get("status"), dict) else obj.setdefault("status", {})
    listed = [c for c in status.get("conditions") or [] if isinstance(c, dict)]
    before = next((c for c in listed if c.get("type") == AVAILABLE), None)
    text = "True" if is_available else "False"
    since = before["lastTransitionTime"] if before and before.get("status") == text else now
    condition = {"type": AVAILABLE, "status": text, "lastTransitionTime": since, "reason": reason, "message": message}
    status["conditions"] = [*(c for c in listed if c is not before), condition]


def _errors(obj: JSON) -> Iterator[FieldError]:
    spec = obj.get("spec") or {}
    group, version, name = str(spec.get("group") or ""), str(spec.get("version") or ""), obj["metadata"].get("name")
    wanted = f"{version}.{group}"
    if name != wanted:
        yield says.invalid("metadata.name", name, f'must be `spec.version+"."+spec.group`: "{wanted}"')
    if group:
        for problem in subdomain_problems(group):
            yield says.invalid("spec.group", group, problem)
    if not version:
        yield says.required("spec.version")
    yield from _priority(spec, "groupPriorityMinimum", MAX_GROUP_PRIORITY)
    yield from _priority(spec, "versionPriority", MAX_VERSION_PRIORITY)
    service = spec.get("service")
    if service is None:
        if spec.get("caBundle"):
            size = f"{len(str(spec['caBundle']))} bytes"
            yield says.invalid("spec.caBundle", size, "local APIServices may not have a caBundle")
        if spec.get("insecureSkipTLSVerify"):
            why = "local APIServices may not have insecureSkipTLSVerify"
            yield says.invalid("spec.insecureSkipTLSVerify", True, why)
        return
    for field in ("namespace", "name"):
        if not service.get(field):
            yield says.required(f"spec.service.{field}")
    port = service.get("port")
    if isinstance(port, int) and not 1 <= port <= 65_535:
        yield says.invalid("spec.service.port", port, "port is not valid: must be between 1 and 65535, inclusive")
    if spec.get("insecureSkipTLSVerify") and spec.get("caBundle"):
        why = "may not be true if caBundle is present"
        yield says.invalid("spec.insecureSkipTLSVerify", True, why)


def _priority(spec: JSON, field: str, most: int) -> Iterator[FieldError]:
    value = spec.get(field) or 0
    if isinstance(value, int) and not 1 <= value <= most:
        yield says.invalid(f"spec.{field}", value, f"must be positive and less than {most}")
