"""The machine that agent tests run on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.system.agent.kit import Machine
from volcano.agent.images import Image
from volcano.agent.process_settings import PodNetwork


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
