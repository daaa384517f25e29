"""Pages of frameworks can be run, are listed, and name files that exist; and output is compared as pages.py says."""

from __future__ import annotations

import re

import pytest

from tests.frameworks.framework import PAGES, ROOT, Framework, all_frameworks
from tests.frameworks.pages import PageError, missing_line, read_page


@pytest.mark.parametrize("framework", all_frameworks(), ids=lambda framework: framework.name)
def test_a_framework_has_a_page_that_can_be_run_and_is_listed(framework: Framework):
    page = read_page(framework.page)

    named = re.findall(r"examples/frameworks/[\w./-]*\w", framework.page.read_text())
    assert page.runs
    assert [name for name in named if not (ROOT / name).exists()] == []
    assert f"({framework.name}.md)" in (PAGES / "README.md").read_text()


def test_every_page_is_listed():
    pages = {path.name for path in PAGES.glob("*.md")} - {"README.md"}

    assert pages - set(re.findall(r"\(([\w-]+\.md)\)", (PAGES / "README.md").read_text())) == set()


def test_output_must_have_the_expected_lines_in_their_order():
    output = "NAME   PHASE\npi-1   Running\npi-2   Pending\n"

    assert missing_line(output, ["NAME PHASE", "pi-… Pending"]) == ""
    assert missing_line(output, ["pi-2 …", "pi-1 …"]) == "pi-1 …"
    assert missing_line(output, ["pi"]) == "pi"


def test_a_page_without_lines_to_run_is_refused(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```sh install\ntrue\n```\n")

    with pytest.raises(PageError, match="no block `sh run`"):
        read_page(page)
