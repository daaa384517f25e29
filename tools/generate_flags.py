"""Write docs/reference/flags.md: every command of `volcano` with its flags, as the commands themselves declare them.

python tools/generate_flags.py           write the page
python tools/generate_flags.py --check   fail if the page is not up to date
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

import click
from generated_page import write_or_check

from volcano.app.main import COMMANDS, volcano_command

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "flags.md"
INTRO = """\
# Commands and flags

Generated from the commands by `tools/generate_flags.py`. Flags that take `BOOLEAN` may be given without a value, which
means true. Flags marked *(accepted)* are there so that command lines written for Volcano work, and change nothing.
"""


def page() -> str:
    return "\n".join([INTRO, *(line for name in COMMANDS for line in section(name))]).rstrip() + "\n"


def section(name: str) -> Iterator[str]:
    context = click.Context(volcano_command, info_name="volcano")
    command = volcano_command.get_command(context, name)
    assert command is not None, f"{name} is listed"
    inner = click.Context(command, info_name=name, parent=context)
    yield f"## volcano {name}\n"
    yield prose(command.help or "") + "\n"
    arguments = [each for each in command.params if isinstance(each, click.Argument)]
    if arguments:
        yield "Usage: `" + " ".join(["volcano", name, *command.collect_usage_pieces(inner)]) + "`\n"
    options = [each for each in command.params if isinstance(each, click.Option)]
    if options:
        yield "| Flag | Default | Meaning |\n|---|---|---|"
        yield from (row(option, inner) for option in options)
        yield ""


def prose(text: str) -> str:
    """Paragraphs as such, and what click must not wrap as code."""
    parts = []
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        mark, _, verbatim = paragraph.partition("\n")
        if mark == "\b":
            heading, *lines = verbatim.splitlines()
            block = ["", "```sh help", *(line.removeprefix("  ") for line in lines), "```"] if lines else []
            parts.append("\n".join([heading, *block]))
        else:
            parts.append(" ".join(paragraph.split()))
    return "\n\n".join(parts)


def row(option: click.Option, context: click.Context) -> str:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    kind = "" if option.is_flag or option.count else f" {option.make_metavar(context)}".replace("|", "\\|")
    meaning = (option.help or "").replace("|", "\\|")
    if option.hidden:
        meaning = f"*(accepted)* {meaning}".strip()
    return f"| {names}{kind} | {default_of(option, context)} | {meaning} |"


def default_of(option: click.Option, context: click.Context) -> str:
    default = option.get_default(context, call=False)
    if default is None or callable(default) or default in ("", ()) or (option.is_flag and not default):
        return ""
    if isinstance(default, (tuple, list)):
        return ", ".join(f"`{each}`" for each in default)
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"


if __name__ == "__main__":
    sys.exit(write_or_check(PAGE, page()))
