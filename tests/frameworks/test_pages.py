"""Pages of frameworks can be run, are listed, and name files that exist."""

from __future__ import annotations

import re

import pytest

from tests.documentation.blocks import read_page
from tests.frameworks.framework import PAGES, ROOT, Framework, all_frameworks


@pytest.mark.parametrize("framework", all_frameworks(), ids=lambda framework: framework.name)
def test_a_framework_has_a_page_that_can_be_run_and_is_listed(framework: Framework):
    page = read_page(framework.page)

    named = re.findall(r"examples/frameworks/[\w./-]*\w", framework.page.read_text())
    assert page.runs and page.up
    assert [name for name in named if not (ROOT / name).exists()] == []
    assert f"({framework.name}.md)" in (PAGES / "README.md").read_text()


def test_every_page_is_listed():
    pages = {path.name for path in PAGES.glob("*.md")} - {"README.md"}

    assert pages - set(re.findall(r"\(([\w-]+\.md)\)", (PAGES / "README.md").read_text())) == set()
