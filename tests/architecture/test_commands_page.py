"""docs/reference/commands.md says what vcctl and the v* programs say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from volcano.cli.programs import programs

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_of_commands_is_up_to_date():
    done = subprocess.run([sys.executable, ROOT / "tools" / "generate_commands.py", "--check"], timeout=60)

    assert done.returncode == 0, "run tools/generate_commands.py"


def test_the_page_names_every_program():
    page = (ROOT / "docs" / "reference" / "commands.md").read_text()

    assert [root.name for root in programs() if f"\n## {root.name}\n" not in page] == []
