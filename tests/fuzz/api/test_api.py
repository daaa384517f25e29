"""A short part of `make fuzz-api`: the same requests at every run, to some operations of the API server and the dashboard."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests import needs
from tests.system.real_system import DEADLINE, ROOT

CANNOT = 75


def test_answers_to_generated_requests_are_as_the_documents_say():
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.api", "--examples", "3", "--operations", "45", "--seed", "3"],
        cwd=ROOT, capture_output=True, text=True, timeout=DEADLINE, check=False,
    )  # fmt: skip

    if done.returncode == CANNOT:
        pytest.skip(needs.reason("no network namespace can be made", "run the tests as root"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 failures" in done.stdout
