"""The operating system a pod says it needs, and what cannot be asked of it."""

from __future__ import annotations

from typing import Final

from volcano.api.fields import Field

NOT_ON_WINDOWS: Final = "cannot be set for a windows pod"
POD_FIELDS: Final = ("hostUsers", "hostPID", "hostIPC", "shareProcessNamespace")
POD_SECURITY: Final = (
    "appArmorProfile", "seLinuxOptions", "seccompProfile", "fsGroup", "fsGroupChangePolicy", "sysctls", "runAsUser",
    "runAsGroup", "supplementalGroups", "supplementalGroupsPolicy", "seLinuxChangePolicy",
)  # fmt: skip
CONTAINER_SECURITY: Final = (
    "appArmorProfile", "seLinuxOptions", "seccompProfile", "capabilities", "readOnlyRootFilesystem", "privileged",
    "allowPrivilegeEscalation", "procMount", "runAsUser", "runAsGroup",
)  # fmt: skip
FALSE_IS_UNSET: Final = ("hostPID", "hostIPC")


def check_system(spec: Field) -> None:
    system = spec.at("os")
    name = system.text("name")
    if system.is_set and not name:
        system.at("name").required()
    elif name == "linux":
        for context in _contexts(spec):
            if context.has("windowsOptions"):
                context.at("windowsOptions").forbidden("windows options cannot be set for a linux pod")
    elif name == "windows":
        _check_windows(spec)
    elif name:
        Field(name, system.path, system.errors).unsupported(("linux", "windows"))
    _check_host_process(spec)


def _check_windows(spec: Field) -> None:
    for name in POD_FIELDS:
        if spec.has(name) and (name not in FALSE_IS_UNSET or spec.truth(name)):
            spec.at(name).forbidden(NOT_ON_WINDOWS)
    pod, *containers = _contexts(spec)
    for name in POD_SECURITY:
        if pod.has(name) and pod.at(name).value != []:
            pod.at(name).forbidden(NOT_ON_WINDOWS)
    for context in containers:
        for name in CONTAINER_SECURITY:
            if context.has(name):
                context.at(name).forbidden(NOT_ON_WINDOWS)


def _check_host_process(spec: Field) -> None:
    """Host processes of Windows: all containers or none, and only on the host's network."""
    pod, *containers = _contexts(spec)
    whole = pod.at("windowsOptions", "hostProcess").as_truth()
    marked = 0
    for context in containers:
        own = context.at("windowsOptions", "hostProcess")
        if whole is not None and own.is_set and own.as_truth() != whole:
            said = str(whole).lower()
            own.invalid(f"pod hostProcess value must be identical if both are specified, was {said}")
        marked += bool(own.as_truth() if own.is_set else whole)
    if not marked:
        return
    if marked != len(containers):
        spec.invalid(
            "If pod contains any hostProcess containers then all containers must be HostProcess containers", ""
        )
    if not spec.truth("hostNetwork"):
        spec.at("hostNetwork").invalid(
            "hostNetwork must be true if pod contains any hostProcess containers", value=False
        )


def _contexts(spec: Field) -> list[Field]:
    """The security context of the pod, then those of its containers."""
    containers = (*spec.each("initContainers"), *spec.each("containers"), *spec.each("ephemeralContainers"))
    return [spec.at("securityContext"), *(container.at("securityContext") for container in containers)]
