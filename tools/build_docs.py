"""Build the documentation site: collect the pages of the repository in one folder, then run mkdocs on it.

python tools/build_docs.py            build into site/; a warning, such as a broken link, is an error

The words after a block's language say how it is tested (tests/documentation/blocks.py); the site is built without them.
Pages link to each other and to files of the repository by relative paths, which work on a code host as well. Links to
files that are not pages (sources, examples) become text, because the site does not contain them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES = ROOT / ".cache" / "docs-site"
TOP = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
FENCE = re.compile(r"^( *```\w+) .*$", re.MULTILINE)
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)#:\s]+)(#[^)]*)?\)")


def collect() -> None:
    shutil.rmtree(PAGES, ignore_errors=True)
    shutil.copytree(ROOT / "docs", PAGES / "docs")
    for name in TOP:
        shutil.copy(ROOT / name, PAGES / name)
    for page in PAGES.rglob("*.md"):
        page.write_text(FENCE.sub(r"\1", LINK.sub(partial(_link, page), page.read_text())))


def _link(page: Path, found: re.Match[str]) -> str:
    source = (ROOT / page.relative_to(PAGES)).parent
    target = (source / found[2]).resolve()
    if target.is_dir() and (target / "README.md").is_file() and (PAGES / target.relative_to(ROOT)).is_dir():
        return f"[{found[1]}]({found[2].rstrip('/')}/README.md{found[3] or ''})"
    if target.is_relative_to(ROOT) and target.exists() and not (PAGES / target.relative_to(ROOT)).exists():
        return found[1]
    return found[0]


if __name__ == "__main__":
    collect()
    command = [sys.executable, "-m", "mkdocs", "build", "--strict"]
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}  # news of the theme's makers, which are no warning of this build
    code = subprocess.run(command, cwd=ROOT, env=quiet, check=False).returncode
    unread = [str(page) for page in (ROOT / "site").rglob("*.html") if "<p>```" in page.read_text()]
    sys.exit(f"blocks that became paragraphs: {unread}" if unread else code)
