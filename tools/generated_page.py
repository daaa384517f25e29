"""How a tool keeps a generated page: writes it, or with --check says whether the page that is there is up to date."""

from __future__ import annotations

import sys
from pathlib import Path


def write_or_check(path: Path, text: str) -> int:
    """The exit status of a tool that makes this page."""
    if "--check" not in sys.argv[1:]:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return 0
    if path.exists() and path.read_text() == text:
        return 0
    print(f"{path.name} is not up to date: run tools/{Path(sys.argv[0]).name}", file=sys.stderr)
    return 1
