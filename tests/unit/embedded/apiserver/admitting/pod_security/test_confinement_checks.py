"""How the kernel confines a container."""

from __future__ import annotations

import pytest

from tests.unit.embedded.apiserver.admitting.pod_security.pods import a_pod, said
from volcano.embedded.apiserver.admitting.pod_security.confinement_checks import (
    APP_ARMOR_ANNOTATION,
    app_armor,
    proc_mount,
    seccomp_baseline,
    seccomp_restricted,
    selinux,
    selinux_1_31,
    sysctls,
    sysctls_1_27,
    sysctls_1_29,
    sysctls_1_32,
)
from volcano.embedded.apiserver.admitting.pod_security.levels import Check

UNCONFINED = {"seccompProfile": {"type": "Unconfined"}}
CONFINED = {"seccompProfile": {"type": "Localhost"}}


@pytest.mark.parametrize(
    ("context", "annotation", "expected"),
    [
        ({}, None, ""),
        ({"appArmorProfile": {"type": "RuntimeDefault"}}, "localhost/x", ""),
        (
            {"appArmorProfile": {"type": "Unconfined"}},
            None,
            'forbidden AppArmor profile (container "a" must not set AppArmor profile type to "Unconfined")',
        ),
        ({}, "unconfined", f'forbidden AppArmor profile (annotation {APP_ARMOR_ANNOTATION}a="unconfined")'),
    ],
)
def test_app_armor(context: dict, annotation: str | None, expected: str):
    annotations = {APP_ARMOR_ANNOTATION + "a": annotation} if annotation else {}

    assert said(app_armor, a_pod(context, annotations=annotations)) == expected


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        ({}, ""),
        ({"procMount": "Default"}, ""),
        ({"procMount": "Unmasked"}, 'procMount (container "a" must not set securityContext.procMount to "Unmasked")'),
    ],
)
def test_proc_mount(context: dict, expected: str):
    assert said(proc_mount, a_pod(context)) == expected


@pytest.mark.parametrize(
    ("check", "options", "expected"),
    [
        (selinux, {}, ""),
        (selinux, {"type": "container_t", "level": "s0"}, ""),
        (selinux_1_31, {"type": "container_engine_t"}, ""),
        (selinux, {"type": "container_engine_t"}, 'type "container_engine_t"'),
        (selinux_1_31, {"type": "x", "user": "u", "role": "r"}, 'type "x"; user may not be set; role may not be set'),
    ],
)
def test_selinux(check: Check, options: dict, expected: str):
    text = f'seLinuxOptions (container "a" set forbidden securityContext.seLinuxOptions: {expected})'

    assert said(check, a_pod({"seLinuxOptions": options})) == (text if expected else "")


@pytest.mark.parametrize(
    ("check", "pod", "context", "expected"),
    [
        (seccomp_baseline, {}, {}, ""),
        (seccomp_baseline, CONFINED, CONFINED, ""),
        (seccomp_baseline, UNCONFINED, {}, 'pod must not set securityContext.seccompProfile.type to "Unconfined"'),
        (seccomp_restricted, CONFINED, {}, ""),
        (seccomp_restricted, {}, CONFINED, ""),
        (
            seccomp_restricted,
            CONFINED,
            UNCONFINED,
            'container "a" must not set securityContext.seccompProfile.type to "Unconfined"',
        ),
        (
            seccomp_restricted,
            {},
            {},
            'pod or container "a" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"',
        ),
    ],
)
def test_seccomp(check: Check, pod: dict, context: dict, expected: str):
    assert said(check, a_pod(context, securityContext=pod)) == (f"seccompProfile ({expected})" if expected else "")


@pytest.mark.parametrize(
    ("check", "name", "is_allowed"),
    [
        (sysctls, "net.ipv4.tcp_syncookies", True),
        (sysctls, "net.ipv4.ip_local_reserved_ports", False),
        (sysctls_1_27, "net.ipv4.ip_local_reserved_ports", True),
        (sysctls_1_27, "net.ipv4.tcp_fin_timeout", False),
        (sysctls_1_29, "net.ipv4.tcp_fin_timeout", True),
        (sysctls_1_29, "net.ipv4.tcp_rmem", False),
        (sysctls_1_32, "net.ipv4.tcp_rmem", True),
    ],
)
def test_sysctls(check: Check, name: str, is_allowed: bool):
    pod = a_pod({}, securityContext={"sysctls": [{"name": name, "value": "1"}]})

    assert said(check, pod) == ("" if is_allowed else f"forbidden sysctl ({name})")


def test_all_forbidden_sysctls_are_listed():
    pod = a_pod({}, securityContext={"sysctls": [{"name": "a"}, {"name": "kernel.shm_rmid_forced"}, {"name": "b"}]})

    assert said(sysctls_1_32, pod) == "forbidden sysctls (a, b)"
