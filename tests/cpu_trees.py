"""Recorded trees of the kernel's files about CPUs, as folders (tools/record_cpu_tree.py made them)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

RECORDED = Path(__file__).parent / "unit" / "embedded" / "agent" / "cpus" / "trees"
NAMES = tuple(sorted(path.stem for path in RECORDED.glob("*.json")))


def recorded(name: str) -> dict[str, str]:
    tree: dict[str, str] = json.loads((RECORDED / f"{name}.json").read_text())
    return tree


def as_folder(tree: Mapping[str, str], folder: Path) -> Path:
    for path, text in tree.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(f"{text}\n")
    return folder
