"""What a batch job gets of this machine, and as whom its pods run."""

from __future__ import annotations

import asyncio
import json
import os
from typing import Any

import pytest

from volcano.api.errors import InternalError
from volcano.api.kubelet import DEFAULT_USER_ANNOTATION
from volcano.cli.slurm.shared_folders import ISOLATION_KEY, PLAIN, SharedFolders, shared_folders, submitting_user


class FakeClient:
    def __init__(self, connection: FakeConnection) -> None:
        self._connection = connection

    async def raw(self, _request: Any) -> None:
        self._connection.looks -= 1
        if self._connection.looks >= 0:
            raise InternalError("components: starting")


class FakeConnection:
    """A server of this version, with nodes that have these annotations, once its components have started."""

    def __init__(self, version: str, *annotations: dict[str, str], looks_until_complete: int = 0) -> None:
        self._version, self._annotations = version, annotations
        self.looks = looks_until_complete
        self.client = FakeClient(self)

    def do(self, work: Any) -> Any:
        return asyncio.run(work)

    def raw(self, *_request: Any) -> bytes:
        return json.dumps({"gitVersion": self._version}).encode()

    def list(self, _row: Any, **_query: str) -> list[dict[str, Any]]:
        return [{"metadata": {"annotations": each}} for each in self._annotations if self.looks < 0]


def asked(version: str, *annotations: dict[str, str]) -> SharedFolders:
    connection: Any = FakeConnection(version, *annotations)
    return shared_folders(connection, ["/srv/work", "/srv/work/out"], "")


def test_where_pods_may_be_any_user_they_are_the_one_who_submits():
    found = asked("v1.34.0+volcano-1", {DEFAULT_USER_ANNOTATION: "65532"})

    assert found.mounted == ("/srv/work",)
    assert found.run_as is not None
    assert (found.run_as["runAsUser"], found.run_as["runAsGroup"]) == (os.geteuid(), os.getegid())


def test_nodes_of_a_system_that_still_starts_are_waited_for():
    connection: Any = FakeConnection("v1.34.0+volcano-1", {DEFAULT_USER_ANNOTATION: "65532"}, looks_until_complete=2)

    assert shared_folders(connection, ["/srv/work"], "").run_as is not None


def test_where_all_pods_are_one_user_the_system_decides():
    assert asked("v1.34.0+volcano-1", {ISOLATION_KEY: "in a user namespace"}) == SharedFolders(("/srv/work",))


@pytest.mark.parametrize(
    ("version", "annotations"),
    [("v1.34.0", {DEFAULT_USER_ANNOTATION: "65532"}), ("v1.34.0+volcano-1", {ISOLATION_KEY: f"{PLAIN}: sorry"})],
)
def test_a_cluster_and_plain_processes_get_nothing(version: str, annotations: dict[str, str]):
    assert asked(version, annotations) == SharedFolders()


def test_the_groups_of_the_submitting_user_come_along(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(os, "getegid", lambda: 100)
    monkeypatch.setattr(os, "getgroups", lambda: [100, 30, 20])

    assert submitting_user() == {"runAsUser": 1000, "runAsGroup": 100, "supplementalGroups": [20, 30]}
