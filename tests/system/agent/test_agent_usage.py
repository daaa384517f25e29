"""What a running pod uses, as kubectl top and the node's own pages show it."""

from __future__ import annotations

import msgspec
import pytest

from tests import needs
from tests.system.agent.kit import NODE, Machine, a_pod
from tests.system.agent.kubectl_kit import Kubectl

pytestmark = [pytest.mark.kubectl, needs.KUBECTL]
HOLDS_MEMORY = "import time; held = bytearray(60_000_000); print('on', flush=True); time.sleep(600)"


@pytest.fixture
async def holding(served_machine: Machine) -> Machine:
    await served_machine.create(a_pod("holding", "python3", "-c", f"exec({HOLDS_MEMORY!r})"))
    await served_machine.until_phase("holding", "Running")
    return served_machine


async def test_kubectl_top_shows_pods_and_nodes(holding: Machine, kubectl: Kubectl):
    code, pods, err = await kubectl("top", "pods", "--containers", "--no-headers")
    _, nodes, _ = await kubectl("top", "nodes", "--no-headers")

    assert (code, err) == (0, "")
    assert pods.split()[:2] == ["holding", "main"]
    assert nodes.split()[0] == NODE


async def test_the_nodes_pages_show_the_pod(holding: Machine, kubectl: Kubectl):
    _, document, _ = await kubectl("get", "--raw", f"/api/v1/nodes/{NODE}/proxy/stats/summary")
    _, page, _ = await kubectl("get", "--raw", f"/api/v1/nodes/{NODE}/proxy/metrics/cadvisor")

    (pod,) = msgspec.json.decode(document)["pods"]
    assert pod["podRef"]["name"] == "holding"
    assert pod["memory"]["workingSetBytes"] > 0
    assert 'container_memory_working_set_bytes{container="main",namespace="default",pod="holding"}' in page
