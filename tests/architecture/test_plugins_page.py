"""docs/reference/plugins.md says what the actions and plugins and their descriptions say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_of_plugins_is_up_to_date():
    done = subprocess.run([sys.executable, ROOT / "tools" / "generate_plugins.py", "--check"], timeout=60)

    assert done.returncode == 0, "run tools/generate_plugins.py"
