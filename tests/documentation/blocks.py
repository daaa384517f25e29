"""Pages as programs: the first word of a fence is its language, the second says what becomes of the block.

    ```sh up               one line, `volcano up …`: the system on which the page runs; without one there is none
    ```sh run              what a user types, in one shell for the page; it must end with 0
    ```sh slow             the same, and the page runs only with --slow
    ```sh install          a download of a framework, once; make test-frameworks runs it
    ```sh elsewhere WHY    not run with the page, for the reason that follows; test_blocks.py counts these
    ```sh help             examples of --help; tests/system/test_help_examples.py runs them
    ```text see            lines that the output of the block before must have, in this order; `…` is any text
    ```text output         what a program prints, where figures differ from machine to machine
    ```text picture        a drawing
    ```yaml file           written to the file that its first line names, for the commands that follow
    ```yaml scenario       a scenario of the simulator
    ```yaml images         a file for `volcano up --images`
    ```python run          a program, run with the page
    ```python from FILE    lines of that file; also for yaml
    ```toml pyproject      a part of a pyproject.toml
    ```json server         the configuration of a client that starts a command of ours
    ```mermaid             a drawing that a tool of ours generates

`needs=a,b` after `run` or `slow` names programs of the machine without which the page cannot run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parents[2]
ROLES = {
    "sh": ("up", "run", "slow", "install", "elsewhere", "help"),
    "text": ("see", "output", "picture"),
    "yaml": ("file", "from", "scenario", "images"),
    "python": ("run", "from"),
    "toml": ("pyproject",),
    "json": ("server",),
    "mermaid": ("",),
}
WITH_MORE_WORDS = {"run", "slow", "elsewhere", "from"}
FILE_NAME = re.compile(r"# (\S+\.\w+)\n")
ANY_TEXT = "…"
END = "END-OF-BLOCK"


class PageError(ValueError):
    """The page's blocks do not fit together."""


@dataclass(frozen=True)
class Fence:
    """A block as it stands on a page."""

    page: Path
    line: int
    info: str
    text: str

    @property
    def words(self) -> list[str]:
        return self.info.split()

    @property
    def language(self) -> str:
        return self.words[0] if self.words else ""

    @property
    def role(self) -> str:
        return self.words[1] if len(self.words) > 1 else ""

    @property
    def more(self) -> str:
        """What follows the role: a reason, a file, or programs."""
        return " ".join(self.words[2:])

    @property
    def place(self) -> str:
        return f"{name_of(self.page)}:{self.line}"

    @property
    def is_classified(self) -> bool:
        if self.role not in ROLES.get(self.language, ()):
            return False
        if self.role in ("elsewhere", "from") or self.more:
            return bool(self.more) and self.role in WITH_MORE_WORDS
        return True

    @property
    def needs(self) -> list[str]:
        return [name for word in self.words if word.startswith("needs=") for name in word[6:].split(",")]


@dataclass
class Block:
    """Lines that are run together, and what their output must have."""

    script: str
    see: list[str] = field(default_factory=list)
    is_typed: bool = True
    """A user types it, which is not so for a file that the page shows."""


@dataclass
class Page:
    path: Path
    installs: list[Block] = field(default_factory=list)
    up: str = ""
    runs: list[Block] = field(default_factory=list)
    needs: list[str] = field(default_factory=list)
    is_slow: bool = False

    @property
    def is_run(self) -> bool:
        return any(block.is_typed for block in self.runs)


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name


def all_pages() -> list[Path]:
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def fences(path: Path) -> list[Fence]:
    """Fenced blocks, also those in lists. Indented ones have no info string: they are of the language "indented"."""
    found = []
    for token in MarkdownIt("commonmark").parse(path.read_text()):
        if token.type in ("fence", "code_block"):
            info = token.info.strip() if token.type == "fence" else "indented"
            found.append(Fence(path, (token.map or [0])[0] + 1, info, token.content))
    return found


def read_page(path: Path) -> Page:
    """What is typed on the page, in its order."""
    page = Page(path)
    last: Block | None = None
    for fence in fences(path):
        page.needs += fence.needs
        match fence.language, fence.role:
            case "text", "see":
                if last is None:
                    raise PageError(f"{fence.place}: a `see` block before any `run` block")
                last.see.extend(line for line in fence.text.splitlines() if line.strip())
            case "sh", "up":
                if not fence.text.startswith("volcano up"):
                    raise PageError(f"{fence.place}: the `up` block must be a line `volcano up …`")
                page.up = fence.text.partition(" #")[0].strip()
            case "sh", "install":
                last = Block(fence.text)
                page.installs.append(last)
            case "sh", "run" | "slow":
                page.is_slow |= fence.role == "slow"
                page.runs.append(last := Block(fence.text))
            case "python", "run":
                page.runs.append(last := Block(f"python3 - <<'{END}'\n{fence.text}{END}\n"))
            case "yaml", "file":
                name = FILE_NAME.match(fence.text)
                if name is None:
                    raise PageError(f"{fence.place}: the first line must be `# NAME.yaml`")
                page.runs.append(Block(f"cat > {name[1]} <<'{END}'\n{fence.text}{END}\n", is_typed=False))
    return page


def missing_line(output: str, expected: list[str]) -> str:
    """The first expected line that the output does not have after the ones before; empty if all are there."""
    lines = iter(output.splitlines())
    for wanted in expected:
        pattern = ".*".join(re.escape(part) for part in re.sub(r"\s+", " ", wanted.strip()).split(ANY_TEXT))
        if not any(re.fullmatch(pattern, re.sub(r"\s+", " ", line.strip())) for line in lines):
            return wanted
    return ""
