"""ARCHITECTURE.md agrees with the code: its tree with the packages, its layers and its glossary with what is there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.source_trees import source_tree

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "volcano"
PAGE = (ROOT / "ARCHITECTURE.md").read_text()
SHOWN_DEPTH = {"embedded": 3}
"""How many levels of a package the tree shows; two where nothing is listed."""
WITH_OWN_INDEX = {"decisions", "frameworks", "howto", "operations", "tutorial"}
"""Folders of docs whose README.md lists their pages."""


def section(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def tree_lines() -> Iterator[tuple[str, str]]:
    """Each folder of the tree as a path below src/volcano, with the words beside it."""
    path: list[str] = []
    for line in section("The tree").split("```")[1].splitlines():
        found = re.fullmatch(r"( *)(\w+)/ +(.*)", line)
        if found is None:
            continue
        depth = len(found[1]) // 2
        path[depth - 1 :] = [found[2]]
        yield "/".join(path), found[3]


def packages() -> set[str]:
    found = set()
    for file in SOURCE.rglob("__init__.py"):
        parts = file.parent.relative_to(SOURCE).parts
        if parts and len(parts) <= SHOWN_DEPTH.get(parts[0], 2):
            found.add("/".join(parts))
    return {name for name in found if not name.startswith("scheduler/plugins/")}


def types() -> set[str]:
    """The names of classes, and of types that are given a name by assignment."""
    found = set()
    for path in SOURCE.rglob("*.py"):
        for node in source_tree(path).body:
            if isinstance(node, ast.ClassDef):
                found.add(node.name)
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found


def test_the_tree_names_every_package_and_no_other():
    assert sorted(path for path, _ in tree_lines()) == sorted(packages())


def test_every_line_of_the_tree_says_what_is_there():
    assert [path for path, words in tree_lines() if len(words) < 5] == []


def test_the_layers_name_every_top_package_once():
    rows = [line.split("|")[2] for line in section("Layers").splitlines() if line.startswith("| ")][1:]
    named = [name for row in rows for name in re.findall(r"`(\w+)`", row)]

    assert sorted(named) == sorted(path.name for path in SOURCE.iterdir() if (path / "__init__.py").is_file())


def test_words_of_the_glossary_that_are_types_exist():
    rows = [line.split("|")[1] for line in section("Glossary").splitlines() if line.startswith("| ")]
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}

    assert named and named - types() == set()


PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
DATED = ("decisions", "CHANGELOG.md")
"""Written once: they name files as these were."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_a_page_lead_somewhere(page: Path):
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text())

    local = [target for target in targets if "://" not in target and not target.startswith("mailto:")]
    assert [target for target in local if not (page.parent / target).exists()] == []


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if page.name not in DATED and page.parent.name not in DATED],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_files_that_a_page_names_exist(page: Path):
    """A path in code quotes, from one of the folders of this repository."""
    named = re.findall(r"`((?:src|tests|docs|examples|tools|benchmarks|deploy)/[\w./-]+)`", page.read_text())

    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_index_of_docs_lists_every_page():
    folder = ROOT / "docs"
    index = (folder / "README.md").read_text()
    pages = [page.relative_to(folder) for page in folder.rglob("*.md") if page.parent.name not in WITH_OWN_INDEX]

    assert [str(page) for page in pages if page.name != "README.md" and f"({page})" not in index] == []
