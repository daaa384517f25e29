"""Every page with commands runs as printed, on the system that it starts."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.documentation.blocks import ROOT, Page, all_pages, name_of, read_page
from tests.documentation.session import type_in
from tests.system.real_system import EXAMPLES, environment, running_up

PAGE_SECONDS = 110
SLOW_PAGE_SECONDS = 300
ELSEWHERE = {"docs/first-hour.md": "tests/system/test_first_hour.py types it into a fresh clone, as root and as a user"}
FRAMEWORKS = ROOT / "docs" / "frameworks"
"""tests/system/test_frameworks.py and make test-frameworks run these pages, which download much."""


def pages() -> list[Page]:
    read = [read_page(path) for path in all_pages() if path.parent != FRAMEWORKS and name_of(path) not in ELSEWHERE]
    return [page for page in read if page.is_run]


def marked(page: Page):
    name = name_of(page.path).removeprefix("docs/").removesuffix(".md")
    seconds = SLOW_PAGE_SECONDS if page.is_slow else PAGE_SECONDS
    marks = [pytest.mark.timeout(seconds + 60), *([pytest.mark.slow] if page.is_slow else [])]
    return pytest.param(page, seconds, id=name, marks=marks)


@pytest.mark.parametrize(("page", "seconds"), [marked(page) for page in pages()])
def test_the_page_runs_as_printed(page, seconds, tmp_path):
    missing = [name for name in page.needs if not shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")]
    if missing:
        pytest.skip(f"not installed here: {', '.join(missing)}")
    work = tmp_path / "work"
    work.mkdir()
    (work / "examples").symlink_to(EXAMPLES)
    if not page.up:
        type_in(page.runs, work, shell(tmp_path, VOLCANO_DATA_DIR=str(tmp_path / "data")), seconds)
        return

    (tmp_path / "system").mkdir()
    with running_up(tmp_path / "system", *page.up.split()[2:]) as up:
        type_in(
            page.runs,
            work,
            shell(tmp_path, VOLCANO_DATA_DIR=str(up.data), KUBECONFIG=str(up.data / "kubeconfig")),
            seconds,
        )


def shell(folder: Path, **more: str) -> dict[str, str]:
    """A newcomer's: a home of its own, and the programs on the path."""
    return environment(folder, PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}", **more)
