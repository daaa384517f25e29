"""Decisions have one form, and the index lists all of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "decisions"
PAGES = sorted(page for page in FOLDER.glob("*.md") if page.name != "README.md")
FORM = re.compile(
    r"# (?P<number>\d+)\. (?P<title>[^\n]+)\n\n"
    r"- Date: (?P<date>\d{4}-\d\d-\d\d)\n"
    r"- Status: (?P<status>accepted|superseded by decision \d+)\n\n"
    r"## Context\n\n(?s:.+)\n\n## Decision\n\n(?s:.+)\n\n## Alternatives\n\n(?s:.+)\n\n## Consequences\n\n(?s:.+)\n"
)
HEADINGS = ["Context", "Decision", "Alternatives", "Consequences"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_decision_has_the_form_of_all(page):
    text = page.read_text()
    found = FORM.fullmatch(text)

    assert found, "number, title, date, status, context, decision, alternatives, consequences"
    assert re.findall(r"^## (.+)$", text, re.M) == HEADINGS
    assert page.name.startswith(f"{int(found['number']):04}-")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_decision_is_listed_in_the_index(page):
    found = FORM.fullmatch(page.read_text())
    assert found

    row = f"| {found['number']} | [{found['title']}]({page.name}) | {found['date']} | {found['status']} |"
    assert row in (FOLDER / "README.md").read_text().splitlines()


def test_the_index_lists_nothing_else_and_no_number_twice():
    listed = re.findall(r"\]\(([^)]+)\)", (FOLDER / "README.md").read_text())

    assert sorted(listed) == [page.name for page in PAGES]
    assert len({page.name[:4] for page in PAGES}) == len(PAGES)
