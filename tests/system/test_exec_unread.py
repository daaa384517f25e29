"""Clients that start programs with exec and never read what these print: the server's memory stays bounded."""

from __future__ import annotations

import socket
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.running_server import Client
from tests.system.real_system import JOBS, PODS, running_up, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(420)]
EXECS = 40
MAX_GROWTH_MEGABYTES = 120
"""Each stream may buffer a few messages in the server and in the agent; without bounds `yes` prints gigabytes."""


def megabytes(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmRSS"))) / 1024


def an_unread_exec(api: Client, pod: str) -> socket.socket:
    """An open WebSocket on which a program prints without end, with a small buffer on this side."""
    connection = api.connect()
    connection.connect()
    connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    query = urlencode([("command", "yes"), ("stdout", "true")])
    connection.putrequest("GET", f"{PODS}/{pod}/exec?{query}")
    for name, value in {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Protocol": "v5.channel.k8s.io",
    }.items():
        connection.putheader(name, value)
    connection.endheaders()
    found = connection.sock
    assert found is not None
    assert found.recv(12).startswith(b"HTTP/1.1 101")
    return found


def test_programs_whose_output_is_not_read_take_little_memory(tmp_path):
    container = {"name": "main", "image": "busybox", "command": ["sleep", "1000"]}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    job = {"schedulerName": "volcano", "minAvailable": 1, "tasks": [{"name": "t", "replicas": 1, "template": template}]}
    with running_up(tmp_path, "--node-cpu", "4") as up:
        assert up.process is not None
        assert up.api.create(JOBS, {"metadata": {"name": "idle"}, "spec": job}).status == 201
        up.until_phase("idle", "Running")
        before = megabytes(up.process.pid)
        samples = [before]

        opened = [an_unread_exec(up.api, "idle-t-0") for _ in range(EXECS)]

        def has_settled() -> bool:
            """Nothing more can be buffered: memory no longer grows."""
            samples.append(megabytes(up.process.pid))
            return len(samples) > 40 and max(samples[-20:]) - min(samples[-20:]) < 1

        wait_until(has_settled, "memory no longer grows", 120)
        for each in opened:
            each.close()

    assert max(samples) - before < MAX_GROWTH_MEGABYTES
