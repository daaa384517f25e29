"""Which client certificates the kubelet endpoint accepts, and how long a request may be."""

from __future__ import annotations

import aiohttp
import pytest

from volcano.embedded.agent.streams.kubelet_server import KubeletServer, is_trusted
from volcano.machinery.clock import SystemClock


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
