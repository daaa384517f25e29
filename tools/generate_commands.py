"""Write docs/reference/commands.md: every command and flag of vcctl and the v* programs, as they declare them.

python tools/generate_commands.py           write the page
python tools/generate_commands.py --check   fail if the page is not up to date
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from generated_page import write_or_check

from volcano.cli.command_line import GLOBAL_FLAGS, CommandSpec, Flag
from volcano.cli.programs import programs

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "commands.md"
INTRO = """\
# vcctl and the v* commands

Generated from the commands by `tools/generate_commands.py`; the flags of `volcano` itself are in [flags.md](flags.md).
"""


def leaves(path: tuple[CommandSpec, ...]) -> Iterator[tuple[CommandSpec, ...]]:
    """The commands that do something, each with those above it."""
    if not path[-1].children:
        yield path
    for child in path[-1].children:
        if not child.hidden:
            yield from leaves((*path, child))


def section(path: tuple[CommandSpec, ...]) -> list[str]:
    command, name = path[-1], " ".join(each.name for each in path)
    lines = [f"### {name}", "", f"{command.short[:1].upper()}{command.short[1:]}.", ""]
    lines += [f"Usage: `{f'{name} {command.arguments}'.strip()} [flags]`", ""]
    lines += table(command.flags)
    if command.script_flags:
        lines += ["With a script or `--wrap`, as sbatch has them:", "", *table(command.script_flags)]
    if command.examples:
        lines += ["```sh help", *command.examples, "```", ""]
    return lines


def table(flags: tuple[Flag, ...]) -> list[str]:
    if not flags:
        return []
    lines = ["| flag | meaning |", "|---|---|"]
    known = sorted(flags, key=lambda each: each.name)
    lines += [f"| `{cell(flag.left.strip())}` | {cell(flag.right)} |" for flag in known]
    return [*lines, ""]


def cell(text: str) -> str:
    return text.replace("|", "\\|")


def page() -> str:
    lines = [INTRO]
    for root in programs():
        lines += [f"## {root.name}", "", f"{root.short[:1].upper()}{root.short[1:]}.", ""]
        for path in leaves((root,)):
            lines += section(path)
    lines += ["## Flags of all of them", "", *table(GLOBAL_FLAGS)]
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    sys.exit(write_or_check(PAGE, page()))
