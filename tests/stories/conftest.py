"""A story is told on both hosts: the embedded system on virtual time, and the components on a real kube-apiserver.

A story takes `host` and gives it an async function of the system. `@pytest.mark.hosts("embedded")` keeps a story to one host:
where it lets hours pass, or needs nodes of a size of its own.
"""

from __future__ import annotations

import pytest

from tests.stories.hosts import EmbeddedHost, Host, KubernetesHost

MARKS = {"embedded": [], "kubernetes": [pytest.mark.kubernetes, pytest.mark.xdist_group("kubernetes")]}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "host" not in metafunc.fixturenames:
        return
    marker = metafunc.definition.get_closest_marker("hosts")
    names = marker.args if marker is not None else tuple(MARKS)
    metafunc.parametrize("host", [pytest.param(name, marks=MARKS[name]) for name in names], indirect=True)


@pytest.fixture
def host(request: pytest.FixtureRequest) -> Host:
    if request.param == "embedded":
        return EmbeddedHost()
    request.getfixturevalue("running")  # scheduler, controllers and nodes
    return KubernetesHost(request.getfixturevalue("plane").kubeconfig, request.getfixturevalue("namespace"))
