"""Every shell block of the tutorial, how-to and operations pages runs as printed, beside a system as the page describes it.

A page declares its system in a comment (`<!-- system: --nodes 1 -->`). Blocks marked `sh` run in order in one shell;
a `yaml` block whose first line names a file is written to it; blocks marked `console` are for people and do not run.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .real_system import EXAMPLES, ROOT, environment, running_up

DOCS = ROOT / "docs"
FOLDERS = ("tutorial", "howto", "operations")
PAGES = sorted(path for folder in FOLDERS for path in (DOCS / folder).glob("*.md"))
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.S | re.M)
SYSTEM = re.compile(r"<!-- system: (.*?) -->")
NEEDS = re.compile(r"<!-- needs: (.*?) -->")
FILE_NAME = re.compile(r"# (\S+\.(?:yaml|conf))\n")
PAGE_SECONDS = 300


def script_of(text: str) -> str:
    """The page as one shell script: files are written where they appear, commands follow."""
    lines = []
    for language, body in BLOCK.findall(text):
        name = FILE_NAME.match(body)
        if language == "yaml" and name:
            lines.append(f"cat > {name[1]} <<'END-OF-FILE'\n{body}END-OF-FILE\n")
        elif language == "sh":
            lines.append(body)
    return "".join(lines)


RUNNING = [page for page in PAGES if "```sh" in page.read_text()]


@pytest.mark.slow
@pytest.mark.parametrize("page", RUNNING, ids=lambda page: page.relative_to(DOCS).with_suffix("").as_posix())
def test_the_page_runs_as_printed(page, tmp_path):
    text = page.read_text()
    missing = [name for found in NEEDS.findall(text) for name in found.split() if not shutil.which(name)]
    if missing:
        pytest.skip(f"not installed here: {', '.join(missing)}")
    system = SYSTEM.search(text)
    work = tmp_path / "work"
    for folder in (work, tmp_path / "system"):
        folder.mkdir()
    (work / "examples").symlink_to(EXAMPLES)
    options = system[1].split() if system else ["--nodes", "0", "--ephemeral"]

    with running_up(tmp_path / "system", *options) as up:
        settings = environment(
            tmp_path, KUBECONFIG=str(up.data / "kubeconfig"), VOLCANO_DATA_DIR=str(up.data), PATH=_path()
        )
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script_of(text)], cwd=work, env=settings, timeout=PAGE_SECONDS,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip

    assert done.returncode == 0, done.stdout


def _path() -> str:
    return f"{Path(sys.executable).parent}:{os.environ['PATH']}"
