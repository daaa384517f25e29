"""The judgement of `make bench-check`, and that its cases run on this tree."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tools.bench_check import MAX_ROUNDS, MAX_SLOWDOWN, compare, slowdown

ROOT = Path(__file__).resolve().parents[3]
CASES = ROOT / "benchmarks" / "check_cases.py"


def test_noise_in_single_rounds_is_no_slowdown():
    assert slowdown([100, 101, 180, 100, 102], [101, 170, 100, 99, 150]) < MAX_SLOWDOWN


def test_a_real_slowdown_is_found_beside_noise():
    assert slowdown([100, 130, 102, 100, 101], [125, 124, 190, 126, 131]) > MAX_SLOWDOWN


def test_what_is_close_to_the_limit_is_measured_more_often(monkeypatch):
    costs = {"base": 100.0, "this": 115.0}
    monkeypatch.setattr("tools.bench_check.cost", lambda _name, source, _counter: costs[source.name])
    sources = {which: Path(which) for which in costs}
    assert compare("any", sources, [])[:2] == (1.15, MAX_ROUNDS)
    costs["this"] = 150.0
    assert compare("any", sources, [])[:2] == (1.5, 3)


@pytest.mark.parametrize("name", subprocess.check_output([sys.executable, CASES, "--list"], text=True).split())
def test_the_case_runs(name):
    done = subprocess.run([sys.executable, CASES, name], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["cpuSeconds"] > 0
