"""The machine that agent tests run on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.system.agent.kit import Machine
from tests.system.agent.kubectl_kit import Kubectl
from volcano.embedded.agent.containers.images import Image
from volcano.embedded.agent.containers.process_settings import PodNetwork
from volcano.embedded.agent.streams.kubelet_server import KubeletTls
from volcano.embedded.apiserver.serving.serve import serve
from volcano.machinery.certificates import Authority, write_private


@pytest.fixture
def pod_network() -> PodNetwork:
    return "host"


@pytest.fixture
def images() -> tuple[Image, ...]:
    return ()


@pytest.fixture
async def machine(tmp_path: Path, pod_network: PodNetwork, images: tuple[Image, ...]) -> AsyncIterator[Machine]:
    given = Machine(tmp_path, pod_network, images)
    await given.server.start()
    await given.start()
    yield given
    await given.stop()


@pytest.fixture
async def served_machine(tmp_path: Path, pod_network: PodNetwork, images: tuple[Image, ...]) -> AsyncIterator[Machine]:
    """A machine whose API server is reached over HTTPS, and which reaches the agent so."""
    given = Machine(tmp_path, pod_network, images)
    await given.server.start()
    pki = tmp_path / "pki"
    kubeconfig = tmp_path / "kubeconfig"
    async with serve(given.server, pki=pki, clock=given.clock, port=0, kubeconfig_path=kubeconfig) as serving:
        given.api_server = (serving.host, serving.port)
        authority = Authority(pki, given.clock.now())
        pair = authority.issue("system:node", (), given.clock.now(), hosts=("127.0.0.1",))
        write_private(pki / "kubelet.pem", pair.certificate + pair.key)
        given.tls = KubeletTls(pki / "kubelet.pem", authority.certificate_path)
        await given.start()
        yield given
        await given.stop()


@pytest.fixture
def kubectl(served_machine: Machine, tmp_path: Path) -> Kubectl:
    return Kubectl(tmp_path / "kubeconfig")
