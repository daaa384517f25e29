"""Maps image names to commands: pods run the host's programs, and a file may map names to commands and roots.

The file is a YAML list, first match wins: `- match: 'nginx*'` with `command: [sleep, infinity]`, `args`, `env`,
`workingDir` and/or `root: /path`.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from volcano.api.bounded_yaml import BoundedYamlError, load_yaml

DEFAULT_PROGRAMS: Final = {
    "busybox": "sh",
    "alpine": "sh",
    "debian": "sh",
    "ubuntu": "sh",
    "centos": "sh",
    "python": "python3",
}


class ImagesError(ValueError):
    """The images file cannot be used; the message has the place and the reason."""


class Image(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """One row of the images file."""

    match: str
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    root: str = ""
    working_dir: str = ""
    env: dict[str, str] = {}


class CommandLine(msgspec.Struct, frozen=True):
    """The command to run for a container."""

    argv: tuple[str, ...]
    root: str = "/"
    working_dir: str = ""
    env: dict[str, str] = {}


class NoImage(msgspec.Struct, frozen=True):
    """Neither the container nor the images file names a command."""

    reason: str
    message: str


def parse_images(text: str, where: str = "images file") -> tuple[Image, ...]:
    try:
        rows: Any = load_yaml(text)
    except BoundedYamlError as error:
        raise ImagesError(f"{where}: {error}") from error
    if rows is None:
        return ()
    if not isinstance(rows, list):
        raise ImagesError(f"{where}: a list of rows is expected, each with `match`")
    try:
        images = tuple(msgspec.convert(row, Image) for row in rows)
    except msgspec.ValidationError as error:
        raise ImagesError(f"{where}: {error}") from error
    for image in images:
        if image.root and not image.root.startswith("/"):
            raise ImagesError(f"{where}: root of {image.match!r} must be an absolute path, not {image.root!r}")
    return images


def read_images(path: Path) -> tuple[Image, ...]:
    try:
        return parse_images(path.read_text(), str(path))
    except OSError as error:
        raise ImagesError(f"{path}: {error.strerror}") from error


def command_line(
    image: str,
    command: list[str],
    args: list[str],
    images: tuple[Image, ...],
    *,
    is_program: Callable[[str], bool] = lambda _name: False,
) -> CommandLine | NoImage:
    """What a container runs: its own command, else its image's, with its own arguments or the image's.

    For an unmapped image the arguments are the command if they begin with a program of this machine.
    """
    row = next((each for each in images if matches(each.match, image)), None)
    if not command and row is None and args and is_program(args[0]):
        return CommandLine(tuple(args))
    argv = (*command, *args)
    if not argv and row is None and (program := default_program(image)):
        return CommandLine((program,))
    if not command and row is not None and row.command:
        argv = (*row.command, *(args or row.args))
    if not command and (row is None or not row.command):
        return NoImage(
            "ErrImageNeverPull",
            f"Container image {image!r} has no command here: pods run this machine's programs, images "
            f"are not pulled. Give the container a `command`, or map the image in the file of --images "
            f"(- match: {image!r}, command: [...]).",
        )
    if row is None:
        return CommandLine(argv)
    return CommandLine(argv, row.root or "/", row.working_dir, row.env)


def default_program(image: str) -> str:
    """The default program of well-known official images; images of the same name elsewhere do not count."""
    name = image.partition("@")[0].removeprefix("docker.io/").removeprefix("library/")
    return DEFAULT_PROGRAMS.get(name.partition(":")[0], "")


def matches(pattern: str, image: str) -> bool:
    """Whether the pattern matches the name as written, without its registry, or without its tag or digest."""
    bare = image.partition("@")[0]
    untagged = bare.rpartition(":")[0] if ":" in bare.rpartition("/")[2] else bare
    names = {image, bare, untagged}
    names |= {name.rpartition("/")[2] for name in names}
    return any(fnmatch.fnmatchcase(name, pattern) for name in names)
