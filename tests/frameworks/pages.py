"""Pages of docs/frameworks as programs: the fenced blocks whose info string says what they are for.

    ```sh install    once, and again when the block changes; $FRAMEWORKS is the folder of environments
    ```sh up         one line, `volcano up …`: the system on which the page runs
    ```sh run        what a user types; it must end with 0
    ```text see      lines that the output of the block before must have, in this order; `…` is any text

Everything else on the page is prose.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

FENCE = re.compile(r"^```(sh|text) (install|up|run|see)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ANY_TEXT = "…"


class PageError(ValueError):
    """The page's blocks do not fit together."""


@dataclass
class Block:
    """Lines that are run together, and what their output must have."""

    script: str
    see: list[str] = field(default_factory=list)


@dataclass
class Page:
    installs: list[Block] = field(default_factory=list)
    up: str = "volcano up"
    runs: list[Block] = field(default_factory=list)


def read_page(path: Path) -> Page:
    page = Page()
    last: Block | None = None
    for language, role, text in FENCE.findall(path.read_text()):
        if (role == "see") != (language == "text"):
            raise PageError(f"{path}: a block `{language} {role}`")
        if role == "see":
            if last is None:
                raise PageError(f"{path}: a `see` block before any `run` block")
            last.see.extend(line for line in text.splitlines() if line.strip())
        elif role == "up":
            if not text.startswith("volcano up"):
                raise PageError(f"{path}: the `up` block must be a line `volcano up …`")
            page.up = text.strip()
        else:
            last = Block(text)
            (page.installs if role == "install" else page.runs).append(last)
    if not page.runs:
        raise PageError(f"{path}: no block `sh run`")
    return page


def missing_line(output: str, expected: list[str]) -> str:
    """The first expected line that the output does not have after the ones before; empty if all are there."""
    lines = iter(output.splitlines())
    for wanted in expected:
        pattern = ".*".join(re.escape(part) for part in re.sub(r"\s+", " ", wanted.strip()).split(ANY_TEXT))
        if not any(re.fullmatch(pattern, re.sub(r"\s+", " ", line.strip())) for line in lines):
            return wanted
    return ""
