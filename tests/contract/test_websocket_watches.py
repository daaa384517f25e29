"""Watches over WebSocket, as fabric8 and browsers ask for them: one text message for each event."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect

from tests.contract.bodies import a_config
from tests.running_server import Client

PATIENCE_SECONDS = 10
NORMAL_CLOSE = 1000


@contextmanager
def websocket(api: Client, path: str, *, subprotocols: list[str] | None = None) -> Iterator[ClientConnection]:
    url = f"wss://{api.server.hostname}:{api.server.port}{path}"
    # kube-apiserver refuses a WebSocket that names no origin
    with connect(
        url, ssl=api.context, origin="https://localhost", subprotocols=subprotocols, proxy=None, compression=None
    ) as socket:
        yield socket


def event(socket: ClientConnection) -> tuple[str, str]:
    message = socket.recv(timeout=PATIENCE_SECONDS)
    assert isinstance(message, str)
    decoded = msgspec.json.decode(message)
    return decoded["type"], decoded["object"]["metadata"]["name"]


def test_each_event_is_one_text_message(api: Client, configs: str):
    since = api.get(configs).body["metadata"]["resourceVersion"]

    with websocket(api, f"{configs}?watch=true&resourceVersion={since}") as socket:
        api.create(configs, a_config("a"))
        api.merge(f"{configs}/a", {"data": {"k": "two\nlines"}})
        api.delete(f"{configs}/a")
        seen = [event(socket) for _ in range(3)]

    assert seen == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]


def test_a_watch_path_needs_no_parameter(api: Client, namespace: str, configs: str):
    api.create(configs, a_config("mine"))

    with websocket(api, f"/api/v1/watch/namespaces/{namespace}/configmaps/mine") as socket:
        assert event(socket) == ("ADDED", "mine")


def test_the_first_subprotocol_that_is_offered_is_taken(api: Client, configs: str):
    with websocket(api, f"{configs}?watch=true", subprotocols=["base64.binary.k8s.io"]) as socket:
        assert socket.subprotocol == "base64.binary.k8s.io"


def test_the_connection_is_closed_when_the_watch_ends(api: Client, configs: str):
    since = api.get(configs).body["metadata"]["resourceVersion"]

    with websocket(api, f"{configs}?watch=true&resourceVersion={since}&timeoutSeconds=1") as socket:
        assert list(socket) == []
        assert socket.close_code == NORMAL_CLOSE


def test_what_cannot_be_watched_is_refused_before_the_upgrade(api: Client, namespace: str):
    with pytest.raises(InvalidStatus) as refused, websocket(api, f"/api/v1/namespaces/{namespace}/nothings?watch=true"):
        pass

    assert refused.value.response.status_code == 404
