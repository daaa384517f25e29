"""docs/reference/job-lifecycle.md says what the table says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from volcano.controllers.job.states import STATES

ROOT = Path(__file__).parents[4]


def test_the_page_is_up_to_date() -> None:
    done = subprocess.run([sys.executable, ROOT / "tools" / "generate_job_lifecycle.py", "--check"], timeout=60)

    assert done.returncode == 0, "run tools/generate_job_lifecycle.py"


def test_the_page_names_every_phase_and_rule() -> None:
    page = (ROOT / "docs" / "reference" / "job-lifecycle.md").read_text()

    for phase, state in STATES.items():
        assert f"**{phase}**" in page
        assert all(rule.words in page for rule in state.settles)
