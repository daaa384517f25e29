"""Blocks that are not typed are read by the parser they are meant for."""

from __future__ import annotations

import tomllib

import pytest
import yaml

from tests.documentation.blocks import ROOT
from tests.documentation.test_blocks import of
from volcano.embedded.agent.containers.images import parse_images
from volcano.scheduler.service.registry import PLUGIN_GROUP
from volcano.simulator.scenarios.scenario import scenario_from

SCENARIOS = ROOT / "examples" / "simulator"


@pytest.mark.parametrize("fence", [*of("yaml", "from"), *of("python", "from")], ids=lambda fence: fence.place)
def test_lines_are_those_of_the_file(fence):
    """In their order; a line of dots leaves some out."""
    source = iter((ROOT / fence.more).read_text().splitlines())
    shown = [line for line in fence.text.splitlines() if line.strip() not in ("", "...", "…")]

    assert [line for line in shown if line not in source] == []


@pytest.mark.parametrize("fence", of("yaml", "scenario"), ids=lambda fence: fence.place)
def test_scenarios_can_be_read(fence):
    scenario = scenario_from(yaml.safe_load(fence.text), SCENARIOS)

    assert scenario.policies


@pytest.mark.parametrize("fence", of("yaml", "images"), ids=lambda fence: fence.place)
def test_rows_of_images_can_be_read(fence):
    assert parse_images(fence.text)


@pytest.mark.parametrize("fence", of("toml", "pyproject"), ids=lambda fence: fence.place)
def test_entry_points_are_of_the_group_that_is_read(fence):
    assert PLUGIN_GROUP in tomllib.loads(fence.text)["project"]["entry-points"]
