"""Recorded outcomes of Volcano, replayed; skipped where the recordings are not at hand."""

from __future__ import annotations

import importlib.util
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from volcano.scheduler.service.replay import replay_scenario

VECTORS = Path(__file__).parents[3] / "shared/vectors"
FILES = sorted(VECTORS.rglob("*.json")) if VECTORS.is_dir() else []

pytestmark = pytest.mark.skipif(not FILES, reason="the recorded outcomes are not at hand")


@cache
def checker() -> Any:
    spec = importlib.util.spec_from_file_location("check", VECTORS / "check.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem[:80])
def test_a_recorded_cycle_is_decided_as_volcano_decided_it(path: Path) -> None:
    scenario = json.loads(path.read_text())

    outcome = replay_scenario(scenario, scores=True)

    assert list(checker().differences(scenario, outcome, 1e-6)) == []
