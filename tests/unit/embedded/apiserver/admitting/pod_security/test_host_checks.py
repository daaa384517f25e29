"""What a pod shares with its machine."""

from __future__ import annotations

import pytest

from tests.unit.embedded.apiserver.admitting.pod_security.pods import a_container, a_pod, said
from volcano.embedded.apiserver.admitting.pod_security.host_checks import (
    host_namespaces,
    host_path_volumes,
    host_ports,
    host_probes,
    windows_host_process,
)
from volcano.embedded.apiserver.admitting.pod_security.pod_parts import PodParts

A_FOLDER = {"hostPath": {"path": "/"}}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, ""),
        ({"hostNetwork": False, "hostPID": False}, ""),
        ({"hostNetwork": True}, "host namespaces (hostNetwork=true)"),
        (
            {"hostIPC": True, "hostPID": True, "hostNetwork": True},
            "host namespaces (hostNetwork=true, hostPID=true, hostIPC=true)",
        ),
    ],
)
def test_host_namespaces(spec: dict, expected: str):
    assert said(host_namespaces, a_pod({}, **spec)) == expected


@pytest.mark.parametrize(
    ("volumes", "expected"),
    [
        ([], ""),
        ([{"name": "a", "emptyDir": {}}], ""),
        ([{"name": "a", **A_FOLDER}], 'hostPath volumes (volume "a")'),
        ([{"name": "a", **A_FOLDER}, {"name": "b", **A_FOLDER}], 'hostPath volumes (volumes "a", "b")'),
    ],
)
def test_host_path_volumes(volumes: list[dict], expected: str):
    assert said(host_path_volumes, a_pod({}, volumes=volumes)) == expected


@pytest.mark.parametrize(
    ("ports", "expected"),
    [
        ([[]], ""),
        ([[{"containerPort": 80}, {"containerPort": 81, "hostPort": 0}]], ""),
        ([[{"hostPort": 80}]], 'hostPort (container "a" uses hostPort 80)'),
        ([[{"hostPort": 80}, {"hostPort": 8}]], 'hostPorts (container "a" uses hostPorts 8, 80)'),
        ([[{"hostPort": 80}], [{"hostPort": 90}]], 'hostPorts (containers "a", "b" use hostPorts 80, 90)'),
    ],
)
def test_host_ports(ports: list[list[dict]], expected: str):
    containers = [a_container(name, ports=each) for name, each in zip("ab", ports, strict=False)]

    assert said(host_ports, PodParts({}, {"containers": containers})) == expected


@pytest.mark.parametrize(
    ("pod", "container", "expected"),
    [
        (None, None, ""),
        (False, False, ""),
        (True, None, "hostProcess (pod must not set securityContext.windowsOptions.hostProcess=true)"),
        (
            True,
            True,
            'hostProcess (pod and container "a" must not set securityContext.windowsOptions.hostProcess=true)',
        ),
    ],
)
def test_windows_host_process(pod: bool | None, container: bool | None, expected: str):
    given = a_pod(
        {"windowsOptions": {"hostProcess": container}}, securityContext={"windowsOptions": {"hostProcess": pod}}
    )

    assert said(windows_host_process, given) == expected


@pytest.mark.parametrize(
    ("container", "expected"),
    [
        ({"livenessProbe": {"httpGet": {"port": 80}}}, ""),
        ({"livenessProbe": {"httpGet": {"port": 80, "host": ""}}}, ""),
        *(
            (handler, 'probe or lifecycle host (container "a" uses probe or lifecycle host "127.0.0.1")')
            for handler in (
                {"livenessProbe": {"httpGet": {"port": 80, "host": "127.0.0.1"}}},
                {"readinessProbe": {"tcpSocket": {"port": 80, "host": "127.0.0.1"}}},
                {"startupProbe": {"httpGet": {"port": 80, "host": "127.0.0.1"}}},
                {"lifecycle": {"postStart": {"httpGet": {"port": 80, "host": "127.0.0.1"}}}},
                {"lifecycle": {"preStop": {"tcpSocket": {"port": 80, "host": "127.0.0.1"}}}},
            )
        ),
    ],
)
def test_host_probes(container: dict, expected: str):
    assert said(host_probes, PodParts({}, {"containers": [{"name": "a", **container}]})) == expected
