"""Security contexts of pods and containers. Privileged mode is permitted."""

from __future__ import annotations

import re
from typing import Final

from volcano.api import names
from volcano.api.fields import Field
from volcano.api.pods.validation.paths import check_descending

MAX_USER_ID: Final = 2**31 - 1
PROFILES: Final = ("Localhost", "RuntimeDefault", "Unconfined")
MAX_SYSCTL_NAME_LENGTH: Final = 253
_SEGMENT: Final = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
SYSCTL: Final = rf"^({_SEGMENT}[\./])*{_SEGMENT}$"
NETWORK_SYSCTLS: Final = ("net.",)
IPC_SYSCTLS: Final = ("fs.mqueue.",)
IPC_EXACT: Final = ("kernel.sem", "kernel.shm_rmid_forced")
IPC_PREFIXES: Final = ("kernel.shm", "kernel.msg")


def check_container_security(context: Field, *, host_users: bool) -> None:
    if not context.is_set:
        return
    _check_ids(context, "runAsUser", "runAsGroup")
    mount = context.at("procMount")
    if mount.is_set:
        if mount.as_text() not in ("Default", "Unmasked"):
            mount.unsupported(("Default", "Unmasked"))
        if host_users and mount.value == "Unmasked":
            mount.invalid("`hostUsers` must be false to use `Unmasked`")
    _check_seccomp(context.at("seccompProfile"))
    if context.at("allowPrivilegeEscalation").as_truth() is False:
        if context.truth("privileged"):
            context.invalid("cannot set `allowPrivilegeEscalation` to false and `privileged` to true")
        if "CAP_SYS_ADMIN" in context.at("capabilities").texts("add"):
            context.invalid("cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN")
    _check_windows_options(context.at("windowsOptions"))
    _check_app_armor(context.at("appArmorProfile"))


def check_pod_security(spec: Field) -> None:
    context = spec.at("securityContext")
    _check_ids(context, "fsGroup", "runAsUser", "runAsGroup")
    for group in context.each("supplementalGroups"):
        group.check(names.range_problems(group.as_number() or 0, 0, MAX_USER_ID))
    if spec.truth("hostPID") and spec.truth("shareProcessNamespace"):
        context.at("shareProcessNamespace").invalid(
            "ShareProcessNamespace and HostPID cannot both be enabled", value=True
        )
    _check_sysctls(spec, context)
    for name, choices in (
        ("fsGroupChangePolicy", ("Always", "OnRootMismatch")),
        ("supplementalGroupsPolicy", ("Merge", "Strict")),
        ("seLinuxChangePolicy", ("Recursive",)),
    ):
        if context.has(name) and context.text(name) not in choices:
            context.at(name).unsupported(choices)
    _check_seccomp(context.at("seccompProfile"))
    _check_windows_options(context.at("windowsOptions"))
    _check_app_armor(context.at("appArmorProfile"))


def check_host_users(spec: Field) -> None:
    """A pod in a user namespace of its own cannot share the host's others."""
    if spec.at("hostUsers").as_truth() is not False:
        return
    if spec.truth("hostNetwork"):
        spec.at("hostNetwork").forbidden("when `hostUsers` is false")
    if spec.truth("hostPID"):
        spec.at("HostPID").forbidden("when `hostUsers` is false")
    if spec.truth("hostIPC"):
        spec.at("HostIPC").forbidden("when `hostUsers` is false")
    for container in (*spec.each("initContainers"), *spec.each("containers")):
        if container.each("volumeDevices"):
            container.at("volumeDevices").forbidden("when `hostUsers` is false")


def _check_ids(context: Field, *fields: str) -> None:
    for name in fields:
        number = context.at(name).as_number()
        if number is not None:
            context.at(name).check(names.range_problems(number, 0, MAX_USER_ID))


def _check_sysctls(spec: Field, context: Field) -> None:
    used: set[str] = set()
    for sysctl in context.each("sysctls"):
        name, place = sysctl.text("name"), sysctl.at("name")
        if not name:
            place.required()
        elif len(name) > MAX_SYSCTL_NAME_LENGTH or not re.fullmatch(SYSCTL, name):
            place.invalid(f"must have at most {MAX_SYSCTL_NAME_LENGTH} characters and match regex {SYSCTL}")
        elif name in used:
            place.duplicate()
        used.add(name)
        dotted = name if "." in name and name.find(".") < (name + "/").find("/") else name.replace("/", ".")
        if spec.truth("hostNetwork") and dotted.startswith(NETWORK_SYSCTLS):
            place.invalid("may not be specified when 'hostNetwork' is true")
        is_ipc = dotted.startswith((*IPC_SYSCTLS, *IPC_PREFIXES)) or dotted in IPC_EXACT
        if spec.truth("hostIPC") and is_ipc:
            place.invalid("may not be specified when 'hostIPC' is true")


def _check_seccomp(profile: Field) -> None:
    if not profile.is_set:
        return
    kind, local = profile.text("type"), profile.at("localhostProfile")
    if not kind:
        profile.at("type").required("type is required when seccompProfile is set")
    elif kind not in PROFILES:
        profile.at("type").unsupported(PROFILES)
    if kind == "Localhost":
        if not local.is_set:
            local.required("must be set when seccomp type is Localhost")
        else:
            check_descending(local, local.as_text())
    elif local.is_set:
        local.invalid("can only be set when seccomp type is Localhost", profile.value)


def _check_app_armor(profile: Field) -> None:
    if not profile.is_set:
        return
    kind, local = profile.text("type"), profile.at("localhostProfile")
    if kind == "Localhost":
        text = local.as_text()
        if not text.strip() and text == text.strip():
            local.required("must be set when AppArmor type is Localhost")
        elif text != text.strip():
            local.invalid("must not be padded with whitespace")
        if names.byte_length(text) > 4095:
            local.too_long(4095)
    elif not kind:
        profile.at("type").required("type is required when appArmorProfile is set")
    elif kind not in PROFILES:
        profile.at("type").unsupported(PROFILES)
    elif local.is_set:
        local.invalid("can only be set when AppArmor type is Localhost")


def _check_windows_options(options: Field) -> None:
    if options.has("gmsaCredentialSpecName"):
        place = options.at("gmsaCredentialSpecName")
        place.check(names.subdomain_problems(place.as_text()))
    if options.has("gmsaCredentialSpec"):
        place = options.at("gmsaCredentialSpec")
        if not place.as_text():
            place.invalid("gmsaCredentialSpec cannot be an empty string", "")
        elif names.byte_length(place.as_text()) > 64 * 1024:
            place.invalid("gmsaCredentialSpec size must be under 64 KiB")
    if options.has("runAsUserName"):
        _check_windows_user(options.at("runAsUserName"))


def _check_windows_user(place: Field) -> None:
    name = place.as_text()
    domain, backslash, user = name.rpartition("\\")
    if not name:
        place.invalid("runAsUserName cannot be an empty string", "")
    elif re.search(r"[\x00-\x1f\x7f]", name):
        place.invalid("runAsUserName cannot contain control characters")
    elif "\\" in domain:
        place.invalid("runAsUserName cannot contain more than one backslash")
    else:
        label = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
        if names.byte_length(domain) >= 256:
            place.invalid("runAsUserName's Domain length must be under 256 characters")
        net_bios = re.fullmatch(r'[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}', domain)
        if backslash and not net_bios and not re.fullmatch(rf"{label}(?:\.{label})*", domain):
            place.invalid("runAsUserName's Domain doesn't match the NetBios nor the DNS format")
        if not user:
            place.invalid("runAsUserName's User cannot be empty")
        elif names.byte_length(user) > 104:
            place.invalid("runAsUserName's User length must not be longer than 104 characters")
        if re.fullmatch(r"[. ]+", user):
            place.invalid("runAsUserName's User cannot contain only periods or spaces")
        if re.search(r'["/\\:;|=,+*?<>@\[\]]', user):
            place.invalid("runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]")
