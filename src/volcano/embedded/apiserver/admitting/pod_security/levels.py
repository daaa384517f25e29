"""Which checks each level and version of the Pod Security Standards has, and what a pod violates."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from volcano.embedded.apiserver.admitting.pod_security import (
    confinement_checks,
    host_checks,
    privilege_checks,
    volume_checks,
)
from volcano.embedded.apiserver.admitting.pod_security.pod_parts import PodParts, Violation

Check: TypeAlias = Callable[[PodParts], Violation | None]
LEVELS: Final = ("privileged", "baseline", "restricted")
LATEST: Final = "latest"
LATEST_MINOR: Final = 1_000_000
"""Above every minor version: `latest` has the newest form of each check."""
_VERSION: Final = re.compile(r"v1\.(0|[1-9][0-9]{0,4})")


class VersionedCheck(NamedTuple):
    """A check: since which minor version each of its forms holds, and since which one Windows pods are exempt."""

    forms: tuple[tuple[int, Check], ...]
    windows_exempt_from: int = LATEST_MINOR + 1

    def run(self, pod: PodParts, minor: int) -> Violation | None:
        if pod.is_windows and minor >= self.windows_exempt_from:
            return None
        form = next((check for since, check in reversed(self.forms) if minor >= since), None)
        return form(pod) if form is not None else None


def _since(minor: int, check: Check) -> VersionedCheck:
    return VersionedCheck(((minor, check),))


# In the order in which Kubernetes reports them.
_SHARED: Final = {
    "appArmorProfile": _since(0, confinement_checks.app_armor),
    "capabilities": _since(0, privilege_checks.default_capabilities),
    "hostNamespaces": _since(0, host_checks.host_namespaces),
    "hostPathVolumes": _since(0, host_checks.host_path_volumes),
    "hostPorts": _since(0, host_checks.host_ports),
    "hostProbesAndHostLifecycle": _since(34, host_checks.host_probes),
    "privileged": _since(0, privilege_checks.privileged),
    "procMount": _since(0, confinement_checks.proc_mount),
    "seLinuxOptions": VersionedCheck(((0, confinement_checks.selinux), (31, confinement_checks.selinux_1_31))),
    "seccompProfile": _since(19, confinement_checks.seccomp_baseline),
    "sysctls": VersionedCheck(
        (
            (0, confinement_checks.sysctls),
            (27, confinement_checks.sysctls_1_27),
            (29, confinement_checks.sysctls_1_29),
            (32, confinement_checks.sysctls_1_32),
        )
    ),
    "windowsHostProcess": _since(0, host_checks.windows_host_process),
}
_RESTRICTED: Final = {
    "allowPrivilegeEscalation": VersionedCheck(((8, privilege_checks.privilege_escalation),), 25),
    "capabilities": VersionedCheck(((22, privilege_checks.restricted_capabilities),), 25),
    "hostPathVolumes": _since(0, volume_checks.restricted_volumes),
    "runAsNonRoot": _since(0, privilege_checks.run_as_non_root),
    "runAsUser": _since(23, privilege_checks.run_as_user),
    "seccompProfile": VersionedCheck(((19, confinement_checks.seccomp_restricted),), 25),
}
"""A restricted check replaces the baseline check of its name, in the versions that have it."""


def minor_of(version: str) -> int | None:
    """The minor version of `latest` or `v1.N`; None for anything else."""
    if version == LATEST:
        return LATEST_MINOR
    match = _VERSION.fullmatch(version)
    return int(match[1]) if match else None


def violations(pod: PodParts, level: str, minor: int) -> list[Violation]:
    """What a pod has that the level does not allow, in the order of the checks."""
    if level == "privileged":
        return []
    restricted = {name: check for name, check in _RESTRICTED.items() if minor >= check.forms[0][0]}
    if level == "baseline":
        restricted = {}
    baseline = [check for name, check in _SHARED.items() if name not in restricted]
    found = [check.run(pod, minor) for check in (*baseline, *restricted.values())]
    return [each for each in found if each is not None]
