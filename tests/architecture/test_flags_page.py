"""docs/reference/flags.md says what the commands say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from volcano.app.main import COMMANDS

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_of_flags_is_up_to_date():
    done = subprocess.run([sys.executable, ROOT / "tools" / "generate_flags.py", "--check"], timeout=60)

    assert done.returncode == 0, "run tools/generate_flags.py"


def test_the_page_of_flags_names_every_command():
    page = (ROOT / "docs" / "reference" / "flags.md").read_text()

    assert [name for name in COMMANDS if f"## volcano {name}\n" not in page] == []
