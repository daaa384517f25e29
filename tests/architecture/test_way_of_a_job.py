"""docs/way-of-a-job.md: every file and function that it names exists, and it has at most 15 hops."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "way-of-a-job.md"
MAX_HOPS = 15
HOP = re.compile(
    r"(?P<number>\d+)\. `(?P<file>src/volcano/[\w/]+\.py)` `(?P<function>[\w.]+)`: (?P<sentence>[A-Z].*\.)"
)

LINES = [line for line in PAGE.read_text().splitlines() if line]
HOPS = [match for line in LINES if (match := HOP.fullmatch(line))]


def functions_of(file: Path) -> set[str]:
    """Functions of a module, and methods as Class.method."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    found = set()
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, functions):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{each.name}" for each in node.body if isinstance(each, functions)}
    return found


def test_the_page_is_a_title_an_introduction_and_at_most_fifteen_hops():
    assert LINES[0].startswith("# ") and len(LINES) == 2 + len(HOPS), "every other line must be a hop"
    assert [int(hop["number"]) for hop in HOPS] == list(range(1, len(HOPS) + 1))
    assert 0 < len(HOPS) <= MAX_HOPS


@pytest.mark.parametrize("hop", HOPS, ids=lambda hop: hop["function"])
def test_a_hop_names_a_function_that_exists_in_one_sentence(hop: re.Match[str]):
    file = ROOT / hop["file"]
    assert file.is_file(), f"{hop['file']} does not exist: update hop {hop['number']} of the page"
    assert hop["function"] in functions_of(file), f"{hop['file']} has no {hop['function']}"
    assert ". " not in hop["sentence"], "one sentence for each hop"
