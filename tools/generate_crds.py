"""Make src/volcano/api/data/crds.json: the CustomResourceDefinitions of Volcano's kinds, for servers that start.

python tools/generate_crds.py           write the file
python tools/generate_crds.py --check   fail if the file is not up to date
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from generated_page import write_or_check

from volcano.api.schemas.crds import crd_manifests

TARGET = Path(__file__).resolve().parents[1] / "src" / "volcano" / "api" / "data" / "crds.json"


def text() -> str:
    """One definition a line, so that a change shows which."""
    lines = ",\n".join(json.dumps(each, separators=(",", ":"), ensure_ascii=False) for each in crd_manifests())
    return f"[\n{lines}\n]\n"


if __name__ == "__main__":
    sys.exit(write_or_check(TARGET, text()))
