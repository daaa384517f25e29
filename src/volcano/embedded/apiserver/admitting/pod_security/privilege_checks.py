"""Checks of what a container may do: privileged mode, capabilities, escalation, its user."""

from __future__ import annotations

from typing import Final

from volcano.api.meta import JSON
from volcano.embedded.apiserver.admitting.pod_security.pod_parts import PodParts, Violation, counted, part, quoted

DEFAULT_CAPABILITIES: Final = frozenset(
    ("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP",
     "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT")
)  # fmt: skip
RESTRICTED_CAPABILITIES: Final = frozenset(("NET_BIND_SERVICE",))


def privileged(pod: PodParts) -> Violation | None:
    names = pod.containers_that(lambda security: security.get("privileged") is True)
    return Violation("privileged", f"{counted(names)} must not set securityContext.privileged=true") if names else None


def default_capabilities(pod: PodParts) -> Violation | None:
    added = _added(pod, DEFAULT_CAPABILITIES)
    return Violation("non-default capabilities", added) if added else None


def restricted_capabilities(pod: PodParts) -> Violation | None:
    names = pod.containers_that(lambda security: "ALL" not in (part(security, "capabilities").get("drop") or ()))
    details = [f'{counted(names)} must set securityContext.capabilities.drop=["ALL"]'] if names else []
    added = _added(pod, RESTRICTED_CAPABILITIES)
    details += [added] if added else []
    return Violation("unrestricted capabilities", "; ".join(details)) if details else None


def _added(pod: PodParts, allowed: frozenset[str]) -> str:
    found: set[str] = set()

    def adds(security: JSON) -> bool:
        more = set(map(str, part(security, "capabilities").get("add") or ())) - allowed
        found.update(more)
        return bool(more)

    names = pod.containers_that(adds)
    if not names:
        return ""
    return f"{counted(names)} must not include {quoted(sorted(found))} in securityContext.capabilities.add"


def privilege_escalation(pod: PodParts) -> Violation | None:
    names = pod.containers_that(lambda security: security.get("allowPrivilegeEscalation") is not False)
    detail = f"{counted(names)} must set securityContext.allowPrivilegeEscalation=false"
    return Violation("allowPrivilegeEscalation != false", detail) if names else None


def run_as_non_root(pod: PodParts) -> Violation | None:
    reason = "runAsNonRoot != true"
    setters = pod.setters(lambda security: security.get("runAsNonRoot") is False)
    if setters:
        return Violation(reason, f"{setters} must not set securityContext.runAsNonRoot=false")
    if pod.security.get("runAsNonRoot") is True:
        return None
    names = pod.containers_that(lambda security: security.get("runAsNonRoot") is None)
    return Violation(reason, f"pod or {counted(names)} must set securityContext.runAsNonRoot=true") if names else None


def run_as_user(pod: PodParts) -> Violation | None:
    setters = pod.setters(lambda security: security.get("runAsUser") == 0)
    return Violation("runAsUser=0", f"{setters} must not set runAsUser=0") if setters else None
