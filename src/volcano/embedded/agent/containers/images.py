"""Maps image names to commands: pods run the host's programs, and a file may map names to commands and roots.

The file is a YAML list, first match wins: `- match: 'nginx*'` with `command: [sleep, infinity]`, `args`, `env`,
`workingDir`, `root: /path`, `venv: /path` and/or `apptainer: docker://…`. docs/images.md describes it.
"""

from __future__ import annotations

import fnmatch
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from volcano.api.bounded_yaml import BoundedYamlError, load_yaml
from volcano.embedded.agent.containers.apptainer import is_apptainer_image
from volcano.embedded.agent.containers.well_known_images import install_hint, well_known

log = logging.getLogger(__name__)
MAX_FILE_BYTES: Final = 1024 * 1024


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
    venv: str = ""  # a virtual environment whose programs come first
    apptainer: str = ""  # an image that Apptainer runs: docker://…, or the path of a SIF file


class CommandLine(msgspec.Struct, frozen=True):
    """The command to run for a container."""

    argv: tuple[str, ...]
    root: str = "/"
    working_dir: str = ""
    env: dict[str, str] = {}
    venv: str = ""
    apptainer: str = ""
    has_command: bool = True  # for Apptainer: without a command, the image's own runs
    has_busybox: bool = False  # programs of busybox fill in what the machine lacks
    program: str = ""  # the one that the images file names: the machine's user has chosen it, not the pod's author


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
        for field, path in (("root", image.root), ("venv", image.venv)):
            if path and not path.startswith("/"):
                raise ImagesError(f"{where}: {field} of {image.match!r} must be an absolute path, not {path!r}")
        if image.apptainer and not is_apptainer_image(image.apptainer):
            raise ImagesError(
                f"{where}: apptainer of {image.match!r} must be docker://… or the path of a .sif file, "
                f"not {image.apptainer!r}"
            )
    return images


def read_images(path: Path) -> tuple[Image, ...]:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
        if len(content) > MAX_FILE_BYTES:
            raise ImagesError(f"{path}: larger than {MAX_FILE_BYTES} bytes")
        return parse_images(content.decode(), str(path))
    except UnicodeDecodeError as error:
        raise ImagesError(f"{path}: not UTF-8 text: {error}") from error
    except OSError as error:
        raise ImagesError(f"{path}: {error.strerror}") from error


class ImagesFile:
    """A file of rows that is read again when it has changed. Content that cannot be used changes nothing."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows = read_images(path)
        self._stamp = self._current_stamp()

    def rows(self) -> tuple[Image, ...]:
        stamp = self._current_stamp()
        if stamp != self._stamp:
            self._stamp = stamp
            try:
                self._rows = read_images(self._path)
            except ImagesError as error:
                log.warning("the images file is kept as it was: %s", error)
        return self._rows

    def _current_stamp(self) -> tuple[int, int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino


def command_line(
    image: str,
    command: list[str],
    args: list[str],
    images: tuple[Image, ...],
    *,
    is_program: Callable[[str], bool] = lambda _name: False,
    is_venv: Callable[[str], bool] = lambda _path: False,
) -> CommandLine | NoImage:
    """What a container runs: its own command, else its image's, with its own arguments or the image's.

    Where neither gives one, the arguments are the command if they begin with a program of this machine or of the
    image's virtual environment.
    """
    row = next((each for each in images if matches(each.match, image)), None)
    apptainer = row.apptainer if row is not None else (image if is_apptainer_image(image) else "")
    if apptainer:
        return _in_apptainer(apptainer, command, args, row)
    meaning, known = row or Image(image), well_known(image)
    venv = meaning.venv or (known.venv if row is None and known is not None and is_venv(known.venv) else "")
    is_available = is_program(args[0]) or is_program(f"{venv}/bin/{args[0]}") if args else False
    if command:
        argv = (*command, *args)
    elif meaning.command:
        argv = (*meaning.command, *(args or meaning.args))
    elif is_available and not meaning.root:
        argv = tuple(args)
    elif row is None and known is not None and known.program and (known.is_entrypoint or not args):
        argv = (known.program, *args)
    else:
        return _without_command(image)
    return CommandLine(
        argv,
        meaning.root or "/",
        meaning.working_dir,
        {"VIRTUAL_ENV": venv, **meaning.env} if venv else meaning.env,
        venv,
        has_busybox=known is not None and known.has_busybox and not meaning.root,
        program=meaning.command[0] if row is not None and meaning.command else "",
    )


def _without_command(image: str) -> NoImage:
    hint = install_hint(image)
    return NoImage(
        "ErrImageNeverPull",
        f"Container image {image!r} has no command here: pods run this machine's programs, images "
        f"are not pulled. Give the container a `command`, or map the image in the file of --images "
        f"(- match: {image!r}, command: [...])." + (f" {hint}" if hint else ""),
    )


def _in_apptainer(image: str, command: list[str], args: list[str], row: Image | None) -> CommandLine:
    own, own_args = (row.command, row.args) if row is not None else ((), ())
    argv = (*(command or own), *(args or (() if command else own_args)))
    return CommandLine(
        argv,
        working_dir=row.working_dir if row is not None else "",
        env=row.env if row is not None else {},
        apptainer=image,
        has_command=bool(command or own),
    )


def matches(pattern: str, image: str) -> bool:
    """Whether the pattern matches the name as written, without its registry, or without its tag or digest."""
    bare = image.partition("@")[0]
    untagged = bare.rpartition(":")[0] if ":" in bare.rpartition("/")[2] else bare
    names = {image, bare, untagged}
    names |= {name.rpartition("/")[2] for name in names}
    return any(fnmatch.fnmatchcase(name, pattern) for name in names)
