"""The #SBATCH and #VSUB lines of a script, found as Slurm finds them: up to the first command. Pure."""

from __future__ import annotations

import shlex
from typing import Final, NamedTuple

MARKS: Final = ("#SBATCH", "#VSUB")
MAX_SCRIPT_BYTES: Final = 96 * 1024
"""The script travels in an environment variable of the pod, of which Linux allows 128 KiB."""


class Directive(NamedTuple):
    """One line of options."""

    line: int
    text: str
    words: tuple[str, ...]


class ScriptRefused(ValueError):
    """A script that cannot be submitted; the message names the line."""


def directives(script: str) -> list[Directive]:
    """Options of the script in their order; ScriptRefused with all lines whose quotes do not end."""
    found, broken = read_directives(script)
    if broken:
        raise ScriptRefused("\n".join(broken))
    return found


def read_directives(script: str) -> tuple[list[Directive], list[str]]:
    """The lines of options in their order, and what is wrong with those whose quotes do not end."""
    found, broken = [], []
    for number, line in enumerate(script.splitlines(), 1):
        stripped = line.strip()
        if not stripped.startswith("#"):
            if stripped:
                break  # the first command: what follows is not read, as in Slurm
            continue
        mark = next((mark for mark in MARKS if line.startswith(mark)), "")
        rest = line[len(mark) :]
        if not mark or (rest and not rest[0].isspace()):
            continue  # a comment; ##SBATCH is one, too
        try:
            found.append(Directive(number, line.strip(), _words(rest, number)))
        except ScriptRefused as error:
            broken.append(str(error))
    return found, broken


def _words(text: str, line: int) -> tuple[str, ...]:
    """As a shell splits them; a word that begins with # begins a comment."""
    reader = shlex.shlex(text, posix=True, punctuation_chars=False)
    reader.whitespace_split, reader.commenters = True, ""
    words = []
    try:
        for word in reader:
            if word.startswith("#"):
                break
            words.append(word)
    except ValueError as error:
        raise ScriptRefused(f"line {line}: {text.strip()}: {str(error).lower()}") from error
    return tuple(words)


def check_script(script: bytes, source: str) -> str:
    """The text, if it can be a batch script."""
    if len(script) > MAX_SCRIPT_BYTES:
        raise ScriptRefused(f"{source} has {len(script)} bytes; at most {MAX_SCRIPT_BYTES} can be submitted")
    if b"\0" in script:
        raise ScriptRefused(f"{source} is not a script but a binary file; use --wrap to run it")
    text = script.decode(errors="surrogateescape")
    if not text.strip():
        raise ScriptRefused(f"{source} is empty")
    if not text.startswith("#!"):
        raise ScriptRefused(
            f"{source}: line 1: This does not look like a batch script. The first line must start with #! followed by "
            "the path to an interpreter, for instance: #!/bin/sh"
        )
    if "\r\n" in text:
        raise ScriptRefused(
            f"{source}: line 1: Batch script contains DOS line breaks (\\r\\n) instead of UNIX line breaks (\\n)"
        )
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ScriptRefused(f"{source} is not UTF-8") from error
    return text
