"""Which folders with programs lie where each container has a folder of its own, and so must be mounted into it."""

from __future__ import annotations

import glob
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Final

import volcano
from volcano.embedded.agent.containers.images import CommandLine
from volcano.embedded.agent.runtime.orders import TEMPORARY_FOLDERS

COVERING: Final = (*TEMPORARY_FOLDERS, "/run")
KERNEL_FOLDERS: Final = ("proc", "sys", "dev")
MAX_PATHS_READ: Final = 1024
MAX_PATHS_TRIED: Final = 64
MAX_WORD_CHARACTERS: Final = 65536
MAX_SETTINGS_BYTES: Final = 4096
PATH_IN_WORD: Final = re.compile(r"(?:/[\w.@+-]+){2,32}")
BASE_IN_SETTINGS: Final = re.compile(r"^home\s*=\s*(/\S*)\s*$", re.MULTILINE)


def covered_environments(line: CommandLine, variables: Iterable[str] = ()) -> dict[Path, Path]:
    """Environments of Python below /tmp that the image, a word of the command or the value of a variable names."""
    known = covered_programs()
    found = named_environments(line, variables, is_hidden=is_covered)
    return {path: real for path, real in found.items() if not any(path.is_relative_to(other) for other in known)}


def named_environments(
    line: CommandLine, variables: Iterable[str] = (), *, is_hidden: Callable[[Path], bool]
) -> dict[Path, Path]:
    """Environments in hidden folders that the container names, and their bases: path → real path.

    The real path is what was looked at: a link that is put in its place meanwhile must not be followed.
    """
    words = (line.venv, *line.argv, *line.env.values(), *variables)
    texts = (found[0] for word in words for found in PATH_IN_WORD.finditer(word[:MAX_WORD_CHARACTERS]))
    read = (Path(each) for each in islice(dict.fromkeys(texts), MAX_PATHS_READ))
    paths = [path for path in read if ".." not in path.parts and path.parts[1] not in KERNEL_FOLDERS]
    hidden = islice((path for path in paths if is_hidden(path)), MAX_PATHS_TRIED)
    found = [each for path in hidden for each in _around(path, _is_environment)]
    virtual = [each for path in paths[:MAX_PATHS_TRIED] for each in _around(path, _is_virtual)]
    bases = [base for _, real in {**dict(found), **dict(virtual)}.items() for base in _base_of(real)]
    return {path: real for path, real in (*found, *bases) if is_hidden(path)}


@cache
def covered_programs() -> dict[Path, Path]:
    """The folders of this interpreter and package that lie in a folder which each container has its own copy of."""
    covered = {path: real for path, real in own_programs().items() if is_covered(path)}
    return {
        path: real
        for path, real in covered.items()
        if not any(path != other and path.is_relative_to(other) for other in covered)
    }


@cache
def own_programs() -> dict[Path, Path]:
    """This interpreter, the one that its virtual environment was made from, and this package: path → real path."""
    folders = sorted({Path(sys.prefix), Path(sys.base_prefix), Path(volcano.__file__).parents[1]})
    return {each: Path(os.path.realpath(each)) for each in folders}


def is_covered(path: Path) -> bool:
    return any(path.is_relative_to(folder) and path != Path(folder) for folder in COVERING)


def _around(path: Path, is_wanted: Callable[[str], bool]) -> Iterator[tuple[Path, Path]]:
    """The innermost such folder that a path is in, with its real path."""
    for each in (path, *path.parents):
        real = os.path.realpath(each)
        if is_wanted(real):
            yield each, Path(real)
            return


def _is_virtual(folder: str) -> bool:
    return os.path.isfile(f"{folder}/pyvenv.cfg")


def _is_environment(folder: str) -> bool:
    """A virtual environment, one of Conda, or the folder of an interpreter."""
    if _is_virtual(folder) or os.path.isdir(f"{folder}/conda-meta"):
        return True
    return os.path.exists(f"{folder}/bin/python3") and bool(glob.glob(f"{glob.escape(folder)}/lib/python3*/os.py"))


def _base_of(environment: Path) -> Iterator[tuple[Path, Path]]:
    """Where the interpreter of a virtual environment lies; only a folder that is one itself is taken for it."""
    try:
        with (environment / "pyvenv.cfg").open("rb") as file:
            found = BASE_IN_SETTINGS.search(file.read(MAX_SETTINGS_BYTES).decode(errors="replace"))
    except OSError:
        return
    if found is not None and ".." not in (base := Path(found[1]).parent).parts:
        real = os.path.realpath(base)
        if _is_environment(real):
            yield base, Path(real)
            yield Path(real), Path(real)
