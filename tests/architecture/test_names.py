"""Names and words that a reader meets: one meaning for each class name, file names that differ, plain English."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

from tests.architecture.source_trees import source_tree

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "volcano"
FILES = sorted(SOURCE.rglob("*.py"))

SHARED_CLASS_NAMES = {"Job", "Queue", "Node"}
"""The API object, and what the scheduler makes of it: the glossary explains both."""

SHARED_FILE_NAMES = {
    "api": {"volumes.py"},
    "controllers": {"controller.py", "groups.py", "settings.py", "states.py", "status.py"},
    "scheduler": {"reclaim.py"},
}
"""What may occur more than once in a family: the controllers are laid out alike; volumes as a kind and their
validation; the action reclaim and what the plugin capacity says to it."""

RIDDLES = re.compile(
    r"(?-i:LONGEST_|LARGEST_|DEEPEST_)|unsay|end_strangers|\bBooks\b|look_at_all|is_meant|RESTART_TARGET_TOO|RESTART_AGAIN"
    r"|\bwhoever\b|\bwhomever\b|\bstrangers?\b|\bnow and then\b|\bnobody\b|\bmere words\b",
    re.IGNORECASE,
)
"""Words of riddles: sentences without a subject, and names that do not say what they limit or do."""


def test_a_class_name_has_one_meaning():
    places = defaultdict(list)
    for path in FILES:
        for node in source_tree(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(f"{path.relative_to(SOURCE)}:{node.lineno}")

    twice = {name: found for name, found in places.items() if len(found) > 1}
    assert {name: found for name, found in twice.items() if name not in SHARED_CLASS_NAMES} == {}


def test_a_file_name_occurs_once_in_a_package_family():
    """A family is a top-level package; below `embedded`, each of its parts."""
    places = defaultdict(list)
    for path in FILES:
        parts = path.relative_to(SOURCE).parts
        family = "/".join(parts[: 2 if parts[0] == "embedded" else 1])
        if path.name not in {"__init__.py", *SHARED_FILE_NAMES.get(family, ())}:
            places[family, path.name].append(str(path.relative_to(SOURCE)))

    assert {key: found for key, found in places.items() if len(found) > 1} == {}


def test_no_riddles():
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in FILES
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if RIDDLES.search(line)
    ]

    assert found == []
