"""Which client certificates the kubelet endpoint accepts, and how long a request may be."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest

from volcano.embedded.agent.streams.kubelet_server import KubeletServer, is_trusted
from volcano.embedded.agent.streams.node_connections import NodeLimits
from volcano.machinery.clock import SystemClock
from volcano.machinery.connections import ConnectionLimits


@pytest.mark.parametrize(
    ("subject", "trusted"),
    [
        ((), False),
        (((("commonName", "kube-apiserver-kubelet-client"),),), True),
        (((("organizationName", "system:masters"),), (("commonName", "admin"),)), True),
        (((("organizationName", "developers"),), (("commonName", "mallory"),)), False),
    ],
)
def test_only_the_api_servers_certificate_is_trusted(subject: tuple[object, ...], trusted: bool):
    assert is_trusted({"subject": subject}) is trusted
    assert not is_trusted(None)


async def test_a_command_may_be_as_long_as_the_api_server_accepts_it():
    kubelet = KubeletServer(None, SystemClock(), None)  # type: ignore[arg-type]
    port = await kubelet.open(lambda _namespace, _name: None)
    try:
        async with aiohttp.ClientSession() as client:
            words = "&".join(f"command={'x' * 1000}" for _ in range(50))
            answer = await client.post(f"http://127.0.0.1:{port}/exec/default/nobody/main?{words}")
            assert answer.status == 404, "the pod is looked for"
    finally:
        await kubelet.close()


async def test_idle_connections_do_not_lock_the_api_server_out():
    limits = NodeLimits(
        connections=ConnectionLimits(total=8, anonymous=8, anonymous_per_address=4, per_identity=4), idle_seconds=0.2
    )
    kubelet = KubeletServer(None, SystemClock(), None, limits=limits)  # type: ignore[arg-type]
    port = await kubelet.open(lambda _namespace, _name: None)
    try:
        idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(16)]

        async with aiohttp.ClientSession() as client:
            assert (await client.get(f"http://127.0.0.1:{port}/healthz")).status == 200
        async with asyncio.timeout(20):
            assert [await reader.read() for reader, _ in idle] == [b""] * 16, "closed by number, then by time"
        for _, writer in idle:
            writer.close()
    finally:
        await kubelet.close()


async def test_a_connection_is_kept_while_its_request_is_answered_and_closed_when_idle_again():
    measuring = asyncio.Event()

    kubelet = KubeletServer(None, SystemClock(), None, limits=NodeLimits(idle_seconds=0.1))  # type: ignore[arg-type]

    async def slow(_node: str) -> list[object]:
        await measuring.wait()
        return []

    kubelet._usage = slow  # type: ignore[method-assign, assignment]
    port = await kubelet.open(lambda _namespace, _name: None)
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /metrics/cadvisor HTTP/1.1\r\nhost: x\r\n\r\n")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.read(1), 0.5)
        measuring.set()

        async with asyncio.timeout(20):
            assert (await reader.read()).startswith(b"HTTP/1.1 200 OK\r\n")
        writer.close()
    finally:
        await kubelet.close()
