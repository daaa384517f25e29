"""Checks of how the kernel confines a container: AppArmor, SELinux, seccomp, /proc and sysctls."""

from __future__ import annotations

from typing import Final

from volcano.api.meta import JSON
from volcano.embedded.apiserver.admitting.pod_security.pod_parts import (
    PodParts,
    Violation,
    counted,
    part,
    plural,
    quoted,
)

APP_ARMOR_ANNOTATION: Final = "container.apparmor.security.beta.kubernetes.io/"
CONFINED_PROFILES: Final = ("RuntimeDefault", "Localhost")
SELINUX_TYPES: Final = frozenset(("", "container_t", "container_init_t", "container_kvm_t"))
SELINUX_TYPES_1_31: Final = SELINUX_TYPES | {"container_engine_t"}
SYSCTLS: Final = frozenset(
    ("kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_syncookies", "net.ipv4.ping_group_range",
     "net.ipv4.ip_unprivileged_port_start")
)  # fmt: skip
SYSCTLS_1_27: Final = SYSCTLS | {"net.ipv4.ip_local_reserved_ports"}
SYSCTLS_1_29: Final = SYSCTLS_1_27 | {
    "net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
}  # fmt: skip
SYSCTLS_1_32: Final = SYSCTLS_1_29 | {"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"}


def app_armor(pod: PodParts) -> Violation | None:
    details = []
    kinds: set[str] = set()

    def unconfined(security: JSON) -> bool:
        kind = part(security, "appArmorProfile").get("type")
        if kind is None or kind in CONFINED_PROFILES:
            return False
        kinds.add(str(kind))
        return True

    setters = pod.setters(unconfined)
    if setters:
        details.append(f"{setters} must not set AppArmor profile type to {quoted(sorted(kinds))}")
    annotations = [
        f'{name}="{value}"'
        for name, value in sorted(pod.annotations.items())
        if name.startswith(APP_ARMOR_ANNOTATION)
        and value not in ("", "runtime/default")
        and not str(value).startswith("localhost/")
    ]
    if annotations:
        details.append(f"{plural(len(annotations), 'annotation')} {', '.join(annotations)}")
    count = len(annotations) + (len(kinds) if setters else 0)
    return Violation(plural(count, "forbidden AppArmor profile"), "; ".join(details)) if details else None


def proc_mount(pod: PodParts) -> Violation | None:
    kinds: set[str] = set()

    def unmasked(security: JSON) -> bool:
        kind = security.get("procMount")
        if kind in (None, "Default"):
            return False
        kinds.add(str(kind))
        return True

    names = pod.containers_that(unmasked)
    detail = f"{counted(names)} must not set securityContext.procMount to {quoted(sorted(kinds))}"
    return Violation("procMount", detail) if names else None


def selinux(pod: PodParts) -> Violation | None:
    return _selinux(pod, SELINUX_TYPES)


def selinux_1_31(pod: PodParts) -> Violation | None:
    return _selinux(pod, SELINUX_TYPES_1_31)


def _selinux(pod: PodParts, allowed: frozenset[str]) -> Violation | None:
    types: dict[str, None] = {}
    fields: set[str] = set()

    def forbidden(security: JSON) -> bool:
        options = part(security, "seLinuxOptions")
        kind = str(options.get("type") or "")
        named = {name for name in ("user", "role") if options.get(name)}
        fields.update(named)
        if kind not in allowed:
            types[kind] = None
        return kind not in allowed or bool(named)

    setters = pod.setters(forbidden)
    if not setters:
        return None
    faults = [counted(list(types), "type")] if types else []
    faults += [f"{name} may not be set" for name in ("user", "role") if name in fields]
    return Violation("seLinuxOptions", f"{setters} set forbidden securityContext.seLinuxOptions: {'; '.join(faults)}")


def seccomp_baseline(pod: PodParts) -> Violation | None:
    kinds: set[str] = set()

    def unconfined(security: JSON) -> bool:
        kind = part(security, "seccompProfile").get("type")
        if kind is None or kind in CONFINED_PROFILES:
            return False
        kinds.add(str(kind))
        return True

    setters = pod.setters(unconfined)
    detail = f"{setters} must not set securityContext.seccompProfile.type to {quoted(sorted(kinds))}"
    return Violation("seccompProfile", detail) if setters else None


def seccomp_restricted(pod: PodParts) -> Violation | None:
    explicit = seccomp_baseline(pod)
    if explicit is not None:
        return explicit
    if part(pod.security, "seccompProfile").get("type") is not None:
        return None
    names = pod.containers_that(lambda security: part(security, "seccompProfile").get("type") is None)
    wanted = 'must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    return Violation("seccompProfile", f"pod or {counted(names)} {wanted}") if names else None


def sysctls(pod: PodParts) -> Violation | None:
    return _sysctls(pod, SYSCTLS)


def sysctls_1_27(pod: PodParts) -> Violation | None:
    return _sysctls(pod, SYSCTLS_1_27)


def sysctls_1_29(pod: PodParts) -> Violation | None:
    return _sysctls(pod, SYSCTLS_1_29)


def sysctls_1_32(pod: PodParts) -> Violation | None:
    return _sysctls(pod, SYSCTLS_1_32)


def _sysctls(pod: PodParts, allowed: frozenset[str]) -> Violation | None:
    names = [str(each.get("name", "")) for each in pod.security.get("sysctls") or ()]
    forbidden = [name for name in names if name not in allowed]
    return Violation(plural(len(forbidden), "forbidden sysctl"), ", ".join(forbidden)) if forbidden else None
