"""Recorded outcomes of Volcano, replayed; skipped where the recordings are not at hand."""

from __future__ import annotations

import importlib.util
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests import needs
from volcano.scheduler.service.replay import replay_scenario

VECTORS = Path(__file__).parents[3] / "shared/vectors"
FILES = sorted(VECTORS.rglob("*.json")) if VECTORS.is_dir() else []
OPEN = Path(__file__).parents[2] / "tools" / "ci" / "vectors_open.txt"

pytestmark = pytest.mark.skipif(
    not FILES, reason=needs.reason("../shared/vectors is not here", "put the recorded outcomes there")
)


def open_cases() -> set[Path]:
    """Those that are not yet expected to agree."""
    lines = (line.partition("#")[0].strip() for line in OPEN.read_text().splitlines())
    return {VECTORS / "later" / line for line in lines if line}


def cases() -> list[Any]:
    differs = pytest.mark.xfail(strict=True, reason=f"listed in {OPEN.name}")
    still_open = open_cases()
    return [pytest.param(path, id=path.stem[:80], marks=[differs] if path in still_open else []) for path in FILES]


@cache
def checker() -> Any:
    spec = importlib.util.spec_from_file_location("check", VECTORS / "check.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", cases())
def test_a_recorded_cycle_is_decided_as_volcano_decided_it(path: Path) -> None:
    scenario = json.loads(path.read_text())

    outcome = replay_scenario(scenario, scores=True)

    assert list(checker().differences(scenario, outcome, 1e-6)) == []
