"""`volcano man DIR`: the manual pages of all programs, from what their help screens are made of."""

from __future__ import annotations

import inspect
from pathlib import Path

import click

from volcano.cli.manual import escaped, manual_pages, title


@click.command()
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
def man_command(directory: Path) -> None:
    """Write manual pages into DIRECTORY, for man -M or an installation.

    \b
    Example:
      volcano man /tmp/volcano-man/man1
    """
    directory.mkdir(parents=True, exist_ok=True)
    pages = {**manual_pages(), "volcano.1": _volcano()}
    for name, text in pages.items():
        (directory / name).write_text(text)
    click.echo(f"wrote {len(pages)} pages; for example: man {directory / 'vcctl.1'}")


def _volcano() -> str:
    """The page of `volcano`, whose commands click describes."""
    from volcano.app.main import COMMANDS, volcano_command

    context = click.Context(volcano_command, info_name="volcano")
    lines = [title("volcano"), ".SH NAME", "volcano \\- a Kubernetes\\-native batch system, here or on a cluster"]
    lines += [".SH SYNOPSIS", ".B volcano", "COMMAND [OPTIONS]", ".SH COMMANDS"]
    for name in COMMANDS:
        command = volcano_command.get_command(context, name)
        assert command is not None, f"{name} is listed"
        lines += [f'.SS "volcano {escaped(name)}"']
        for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
            mark, _, verbatim = paragraph.partition("\n")
            is_verbatim = mark == "\b"
            text = verbatim if is_verbatim else paragraph
            shown = [escaped(line) for line in text.splitlines()]
            lines += [".PP", *([".nf", *shown, ".fi"] if is_verbatim else shown)]
        for option in command.params:
            record = option.get_help_record(click.Context(command, info_name=name, parent=context))
            if record is not None:
                lines += [".TP", f".B {escaped(record[0])}", escaped(record[1]) or "\\&"]
    return "\n".join(lines) + "\n"
