"""What a container may do."""

from __future__ import annotations

import pytest

from tests.unit.embedded.apiserver.admitting.pod_security.pods import a_container, a_pod, said
from volcano.embedded.apiserver.admitting.pod_security.pod_parts import PodParts
from volcano.embedded.apiserver.admitting.pod_security.privilege_checks import (
    default_capabilities,
    privilege_escalation,
    privileged,
    restricted_capabilities,
    run_as_non_root,
    run_as_user,
)


@pytest.mark.parametrize(
    ("contexts", "expected"),
    [
        ([{}], ""),
        ([{"privileged": False}], ""),
        ([{"privileged": True}], 'privileged (container "a" must not set securityContext.privileged=true)'),
        (
            [{"privileged": True}] * 2,
            'privileged (containers "a", "b" must not set securityContext.privileged=true)',
        ),
    ],
)
def test_privileged(contexts: list[dict], expected: str):
    assert said(privileged, a_pod(*contexts)) == expected


@pytest.mark.parametrize("field", ["initContainers", "containers", "ephemeralContainers"])
def test_every_kind_of_container_is_checked(field: str):
    pod = PodParts({}, {field: [a_container("x", {"privileged": True})]})

    assert said(privileged, pod) == 'privileged (container "x" must not set securityContext.privileged=true)'


@pytest.mark.parametrize(
    ("contexts", "expected"),
    [
        ([{}], ""),
        ([{"capabilities": {"add": ["CHOWN", "NET_BIND_SERVICE"]}}], ""),
        (
            [{"capabilities": {"add": ["SYS_TIME", "NET_ADMIN"]}}, {"capabilities": {"add": ["SYS_TIME"]}}],
            'non-default capabilities (containers "a", "b" must not include "NET_ADMIN", "SYS_TIME" in '
            "securityContext.capabilities.add)",
        ),
    ],
)
def test_default_capabilities(contexts: list[dict], expected: str):
    assert said(default_capabilities, a_pod(*contexts)) == expected


@pytest.mark.parametrize(
    ("contexts", "expected"),
    [
        ([{"capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}}], ""),
        (
            [{"capabilities": {"drop": ["KILL"]}}],
            'unrestricted capabilities (container "a" must set securityContext.capabilities.drop=["ALL"])',
        ),
        (
            [{"capabilities": {"add": ["CHOWN"]}}],
            'unrestricted capabilities (container "a" must set securityContext.capabilities.drop=["ALL"]; container "a" '
            'must not include "CHOWN" in securityContext.capabilities.add)',
        ),
    ],
)
def test_restricted_capabilities(contexts: list[dict], expected: str):
    assert said(restricted_capabilities, a_pod(*contexts)) == expected


@pytest.mark.parametrize(
    ("contexts", "expected"),
    [
        ([{"allowPrivilegeEscalation": False}], ""),
        *(
            (
                [given],
                'allowPrivilegeEscalation != false (container "a" must set '
                "securityContext.allowPrivilegeEscalation=false)",
            )
            for given in ({}, {"allowPrivilegeEscalation": True}, {"allowPrivilegeEscalation": None})
        ),
    ],
)
def test_privilege_escalation(contexts: list[dict], expected: str):
    assert said(privilege_escalation, a_pod(*contexts)) == expected


@pytest.mark.parametrize(
    ("pod", "contexts", "expected"),
    [
        ({"runAsNonRoot": True}, [{}], ""),
        ({}, [{"runAsNonRoot": True}], ""),
        ({}, [{}], 'pod or container "a" must set securityContext.runAsNonRoot=true'),
        ({}, [{"runAsNonRoot": True}, {}], 'pod or container "b" must set securityContext.runAsNonRoot=true'),
        ({"runAsNonRoot": False}, [{}], "pod must not set securityContext.runAsNonRoot=false"),
        (
            {"runAsNonRoot": True},
            [{"runAsNonRoot": False}],
            'container "a" must not set securityContext.runAsNonRoot=false',
        ),
    ],
)
def test_run_as_non_root(pod: dict, contexts: list[dict], expected: str):
    given = a_pod(*contexts, securityContext=pod)

    assert said(run_as_non_root, given) == (f"runAsNonRoot != true ({expected})" if expected else "")


@pytest.mark.parametrize(
    ("pod", "contexts", "expected"),
    [
        ({}, [{}], ""),
        ({"runAsUser": 1}, [{"runAsUser": 1000}], ""),
        ({"runAsUser": 0}, [{}], "runAsUser=0 (pod must not set runAsUser=0)"),
        ({"runAsUser": 0}, [{"runAsUser": 0}], 'runAsUser=0 (pod and container "a" must not set runAsUser=0)'),
    ],
)
def test_run_as_user(pod: dict, contexts: list[dict], expected: str):
    assert said(run_as_user, a_pod(*contexts, securityContext=pod)) == expected
