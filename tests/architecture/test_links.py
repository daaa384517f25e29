"""Links between the pages of the repository lead to files and headings that exist, and every page can be reached."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\[[^\]]*\]\(([^)#:\s]*)(?:#([^)\s]*))?\)")
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.S)
HEADING = re.compile(r"^#+ (.+)$", re.M)
FENCED = re.compile(r"^ *```.*?^ *```$", re.M | re.S)


def links(page: Path) -> list[tuple[Path, str]]:
    """The file and the heading of each link; a folder stands for its README."""
    found = []
    for path, heading in LINK.findall(CODE.sub("", page.read_text())):
        target = (page.parent / path).resolve() if path else page
        found.append((target / "README.md" if (target / "README.md").is_file() else target, heading))
    return found


def anchors(page: Path) -> set[str]:
    """As code hosts and mkdocs make them of headings."""
    headings = HEADING.findall(FENCED.sub("", page.read_text()))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_to_files_and_headings(page):
    lost = [str(target) for target, _ in links(page) if not target.exists()]
    lost += [
        f"{target.name}#{heading}"
        for target, heading in links(page)
        if heading and target.suffix == ".md" and target.exists() and heading not in anchors(target)
    ]

    assert lost == []


def test_every_page_can_be_reached_from_the_readme():
    reached, new = set(), {ROOT / "README.md"}
    while new:
        reached |= new
        targets = {target for page in new for target, _ in links(page) if target.suffix == ".md" and target.exists()}
        new = targets - reached

    assert [page.relative_to(ROOT).as_posix() for page in PAGES if page not in reached] == []


def test_every_page_is_in_the_navigation_of_the_site():
    """Decisions and frameworks have an index each."""
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    named = set(re.findall(r"[\w/.-]+\.md", yaml.safe_dump(config["nav"], width=1000)))
    indexed = ("docs/decisions/", "docs/frameworks/")

    pages = {page.relative_to(ROOT).as_posix() for page in PAGES}
    pages = {name for name in pages if not name.startswith(indexed) or name.endswith("README.md")}
    assert (pages - named, named - pages) == (set(), set())
