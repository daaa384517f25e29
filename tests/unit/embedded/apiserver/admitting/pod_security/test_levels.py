"""Which checks each level and version has."""

from __future__ import annotations

import pytest

from tests.unit.embedded.apiserver.admitting.pod_security.pods import SAFE, a_pod
from volcano.embedded.apiserver.admitting.pod_security.levels import LATEST_MINOR, minor_of, violations

BAD = a_pod(
    {"privileged": True, "capabilities": {"add": ["SYS_TIME"]}, "runAsUser": 0},
    hostPID=True,
    volumes=[{"name": "v", "hostPath": {"path": "/"}}],
)


def reasons(level: str, minor: int = LATEST_MINOR, pod=BAD) -> list[str]:
    return [each.reason for each in violations(pod, level, minor)]


def test_privileged_allows_everything():
    assert reasons("privileged") == []


def test_baseline_has_its_own_checks():
    assert reasons("baseline") == ["non-default capabilities", "host namespaces", "hostPath volumes", "privileged"]


def test_restricted_has_those_of_baseline_first_and_replaces_the_ones_it_tightens():
    assert reasons("restricted") == [
        "host namespaces",
        "privileged",
        "allowPrivilegeEscalation != false",
        "unrestricted capabilities",
        "restricted volume types",
        "runAsNonRoot != true",
        "runAsUser=0",
        "seccompProfile",
    ]


def test_an_older_version_has_fewer_checks():
    assert reasons("restricted", 7) == [
        "non-default capabilities",
        "host namespaces",
        "privileged",
        "restricted volume types",
        "runAsNonRoot != true",
    ]


def test_a_safe_pod_passes_every_level():
    assert [reasons(level, pod=a_pod(SAFE)) for level in ("baseline", "restricted")] == [[], []]


@pytest.mark.parametrize(("minor", "expected"), [(24, 3), (25, 0)])
def test_windows_pods_are_exempt_from_what_windows_does_not_have(minor: int, expected: int):
    pod = a_pod({"runAsNonRoot": True}, os={"name": "windows"})

    assert len(violations(pod, "restricted", minor)) == expected


@pytest.mark.parametrize(
    ("version", "minor"),
    [("latest", LATEST_MINOR), ("v1.0", 0), ("v1.33", 33), ("v1.01", None), ("1.33", None), ("v2.0", None), ("", None)],
)
def test_versions(version: str, minor: int | None):
    assert minor_of(version) == minor
