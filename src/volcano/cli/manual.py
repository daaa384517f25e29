"""Manual pages in roff, from the same values that help screens and completion are made of."""

from __future__ import annotations

from collections.abc import Iterator

from volcano import __version__
from volcano.cli.command_line import GLOBAL_FLAGS, CommandSpec, Flag
from volcano.cli.programs import programs


def manual_pages() -> dict[str, str]:
    """File name → text, for each program."""
    return {f"{root.name}.1": page(root) for root in programs()}


def page(root: CommandSpec) -> str:
    lines = [
        title(root.name),
        ".SH NAME",
        f"{root.name} \\- {escaped(root.short)}",
        ".SH SYNOPSIS",
        f".B {root.name}",
        escaped("[command] [flags]" if root.children else f"{root.arguments} [flags]".strip()),
    ]
    commands = list(_leaves((root,)))
    if root.children:
        lines.append(".SH COMMANDS")
        for path in commands:
            lines += _command(path)
    else:
        lines += [".SH OPTIONS", *_options(root.flags)]
    if root.script_flags:
        lines += [".SH OPTIONS WITH A SCRIPT", *_options(root.script_flags)]
    lines += [".SH GLOBAL OPTIONS", *_options(GLOBAL_FLAGS)]
    if root.examples:
        lines += [".SH EXAMPLES", *_examples(root.examples)]
    return "\n".join(lines) + "\n"


def title(name: str) -> str:
    return f'.TH {name.upper()} 1 "" "Volcano {__version__}" "Volcano"\n.ad l'


def _leaves(path: tuple[CommandSpec, ...]) -> Iterator[tuple[CommandSpec, ...]]:
    for child in path[-1].children:
        if child.hidden:
            continue
        if child.children:
            yield from _leaves((*path, child))
        else:
            yield (*path, child)


def _command(path: tuple[CommandSpec, ...]) -> list[str]:
    command = path[-1]
    words = " ".join(each.name for each in path)
    heading = f"{escaped(words)} {escaped(command.arguments)}".rstrip()
    lines = [f'.SS "{heading}"', escaped(command.short) + "."]
    return [*lines, *_options(command.flags), *(_examples(command.examples) if command.examples else ())]


def _options(flags: tuple[Flag, ...]) -> list[str]:
    lines = []
    for flag in sorted(flags, key=lambda each: each.name):
        lines += [".TP", f".B {escaped(flag.left.strip())}", escaped(flag.right) or "\\&"]
    return lines


def _examples(examples: tuple[str, ...]) -> list[str]:
    return [".PP", ".nf", *(f"  {escaped(each)}" for each in examples), ".fi"]


def escaped(text: str) -> str:
    """Text that roff takes literally."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("…", "...")
    text = "".join(each if each.isascii() else f"\\[u{ord(each):04X}]" for each in text)
    return f"\\&{text}" if text.startswith((".", "'")) else text
