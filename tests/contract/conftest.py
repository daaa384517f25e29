"""The contract suite speaks to two API servers: the embedded one, and a real kube-apiserver where it is built.

$VOLCANO_CONTRACT_KUBECONFIG names another real one. No controllers run beside either: what is tested is the server.
"""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import needs
from tests.kubernetes.control_plane import ControlPlane, binaries
from tests.running_server import Client, running_server

_numbers = itertools.count(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The tests on the real server share it, so they stay on one worker."""
    for item in items:
        if "[kubernetes" in item.nodeid and Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.kubernetes)
            item.add_marker(pytest.mark.xdist_group("contract-kubernetes"))


@pytest.fixture(scope="session", params=["embedded", "kubernetes"])
def api(request: pytest.FixtureRequest) -> Iterator[Client]:
    if request.param == "embedded":
        with running_server() as running:
            yield Client(running.kubeconfig)
        return
    if given := os.environ.get("VOLCANO_CONTRACT_KUBECONFIG", ""):
        yield Client(Path(given))
        return
    programs = binaries()
    if programs is None:
        pytest.skip(needs.CONTROL_PLANE)
    with tempfile.TemporaryDirectory() as folder, ControlPlane(Path(folder), programs, controls=False) as plane:
        yield Client(plane.kubeconfig)


@pytest.fixture
def namespace(api: Client) -> Iterator[str]:
    """A namespace of the test's own."""
    name = f"contract-{os.getpid()}-{next(_numbers)}"
    assert api.create("/api/v1/namespaces", {"metadata": {"name": name}}).status == 201
    # pods need it, and a controller makes it elsewhere
    api.create(f"/api/v1/namespaces/{name}/serviceaccounts", {"metadata": {"name": "default"}})
    yield name
    api.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture
def pods(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods"


@pytest.fixture
def configs(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"
