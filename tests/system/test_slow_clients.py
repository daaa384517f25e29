"""Clients that take nothing, send nothing, or send it slowly: they are cut off and delay nobody."""

from __future__ import annotations

import resource
import socket
import time
from collections.abc import Iterator

import pytest

from tests.contract.bodies import a_config
from tests.running_server import Client, Running, running_server
from volcano.embedded.apiserver.serving.asgi import HttpLimits
from volcano.machinery.connections import ConnectionLimits

STRANGERS_PER_ADDRESS = ConnectionLimits().anonymous_per_address
CONFIGS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
def running() -> Iterator[Running]:
    with running_server(limits=HttpLimits(header_seconds=1.0, body_seconds=1.0, stall_seconds=1.0)) as running:
        yield running


def connected(api: Client) -> socket.socket:
    raw = socket.create_connection((api.server.hostname, api.server.port), timeout=20)
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    return api.context.wrap_socket(raw, server_hostname=api.server.hostname)


def test_a_watcher_that_reads_nothing_is_cut_off_and_the_others_see_everything(running: Running):
    api = Client(running.kubeconfig)
    hub = running.server.backend.hub
    with connected(api) as stuck, api.watching(CONFIGS) as events:
        stuck.sendall(f"GET {CONFIGS}?watch=true HTTP/1.1\r\nhost: x\r\n\r\n".encode())
        api.create(CONFIGS, a_config("c"))
        for number in range(80):
            api.merge(f"{CONFIGS}/c", {"data": {"number": str(number), "bulk": "x" * 200_000}})
            while next(events)["object"].get("data", {}).get("number") != str(number):
                pass
        deadline = time.monotonic() + 20
        while hub.watchers > 1:
            assert time.monotonic() < deadline
            time.sleep(0.05)

        api.create(CONFIGS, a_config("after"))
        assert next(events)["object"]["metadata"]["name"] == "after"


def test_a_body_that_never_comes_is_given_up(running: Running):
    api = Client(running.kubeconfig)
    with connected(api) as slow:
        slow.sendall(
            f"POST {CONFIGS} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{{".encode()
        )

        answer = slow.recv(1000)

    assert b" 504 " in answer


def test_headers_that_never_end_are_given_up(running: Running):
    api = Client(running.kubeconfig)
    with connected(api) as slow:
        slow.sendall(b"GET /version HTTP/1.1\r\nhost: x\r\n")

        assert slow.recv(1000) == b""


def test_a_client_that_leaves_is_forgotten(running: Running):
    api = Client(running.kubeconfig)
    with api.watching(CONFIGS):
        deadline = time.monotonic() + 20
        while running.server.backend.hub.watchers != 1:
            assert time.monotonic() < deadline
            time.sleep(0.01)

    deadline = time.monotonic() + 20
    while running.server.backend.hub.watchers:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def is_cut(connection: socket.socket) -> bool:
    """Whether the server has closed the connection; waits until it has."""
    try:
        while connection.recv(65536):
            pass
    except TimeoutError:
        return False
    except OSError:
        return True
    return True


def test_idle_anonymous_cannot_lock_anybody_else_out(running: Running):
    """More connections than anonymous may have: the oldest are closed, and the administrator is answered."""
    nobody, sockets = Client(running.kubeconfig, anonymous=True), []
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    try:
        for _ in range(STRANGERS_PER_ADDRESS + 100):
            sockets.append(connected(nobody))
            sockets[-1].sendall(b"GET /version HTTP/1.1\r\nhost: x\r\n\r\n")
            assert b" 200 " in sockets[-1].recv(4096)

        assert Client(running.kubeconfig).get("/api/v1/namespaces/default").status == 200
        assert is_cut(sockets[0])
        assert is_cut(sockets[99])
    finally:
        for each in sockets:
            each.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_empty_lines_after_a_request_do_not_keep_a_connection(running: Running):
    with connected(Client(running.kubeconfig)) as idle:
        idle.sendall(b"GET /version HTTP/1.1\r\nhost: x\r\n\r\n")
        assert b" 200 " in idle.recv(65536)
        idle.sendall(b"\r\n")

        assert is_cut(idle)
