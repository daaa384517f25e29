"""The contract suite speaks to one API server: the one of $VOLCANO_CONTRACT_KUBECONFIG, else an embedded one."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.running_server import Client, running_server

REAL = os.environ.get("VOLCANO_CONTRACT_KUBECONFIG", "")
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def api() -> Iterator[Client]:
    if REAL:
        yield Client(Path(REAL))
        return
    with running_server() as running:
        yield Client(running.kubeconfig)


@pytest.fixture
def namespace(api: Client) -> Iterator[str]:
    """A namespace of the test's own."""
    name = f"contract-{os.getpid()}-{next(_numbers)}"
    assert api.create("/api/v1/namespaces", {"metadata": {"name": name}}).status == 201
    if REAL:  # pods need it, and a controller makes it there
        api.create(f"/api/v1/namespaces/{name}/serviceaccounts", {"metadata": {"name": "default"}})
    yield name
    api.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture
def pods(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods"


@pytest.fixture
def configs(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"
