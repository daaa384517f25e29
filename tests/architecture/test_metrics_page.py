"""docs/reference/metrics.md is what the registries of the components contain."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from volcano.scheduler.service.metric_help import HELP

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_of_metrics_is_up_to_date():
    done = subprocess.run([sys.executable, ROOT / "tools" / "generate_metrics.py", "--check"], timeout=60)

    assert done.returncode == 0, "run tools/generate_metrics.py"


def test_the_page_has_every_metric_of_the_scheduler_with_its_help():
    page = (ROOT / "docs" / "reference" / "metrics.md").read_text()

    assert {name for name, text in HELP.items() if f"`volcano_{name}`" not in page or text not in page} == set()
