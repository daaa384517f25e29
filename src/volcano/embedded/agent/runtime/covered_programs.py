"""Which folders with programs lie where each container has a folder of its own, and so must be mounted into it."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Final

import volcano
from volcano.embedded.agent.containers.images import CommandLine
from volcano.embedded.agent.runtime.orders import TEMPORARY_FOLDERS

COVERING: Final = (*TEMPORARY_FOLDERS, "/run")
MAX_PATHS_TRIED: Final = 64
MAX_WORD_CHARACTERS: Final = 65536
PATH_IN_WORD: Final = re.compile(r"(?:/[\w.@+-]+){2,32}")


def covered_environments(line: CommandLine, variables: Iterable[str] = ()) -> tuple[Path, ...]:
    """Virtual environments below /tmp that the image, a word of the command or the value of a variable names."""
    words = (line.venv, *line.argv, *line.env.values(), *variables)
    paths = (Path(found[0]) for word in words for found in PATH_IN_WORD.finditer(word[:MAX_WORD_CHARACTERS]))
    tried = islice((path for path in paths if _is_covered(path) and ".." not in path.parts), MAX_PATHS_TRIED)
    known = covered_programs()
    found = dict.fromkeys(each for path in tried if (each := _environment_of(path)) is not None)
    return tuple(each for each in found if not any(each.is_relative_to(other) for other in known))


@cache
def covered_programs() -> tuple[Path, ...]:
    """The folders of this interpreter and package that lie in a folder which each container has its own copy of."""
    folders = {Path(sys.prefix), Path(volcano.__file__).parents[1]}
    covered = [each for each in sorted(folders) if _is_covered(each)]
    return tuple(each for each in covered if not any(each != other and each.is_relative_to(other) for other in covered))


def _environment_of(path: Path) -> Path | None:
    """The virtual environment that a path is in."""
    return next((each for each in (path, *path.parents) if (each / "pyvenv.cfg").is_file()), None)


def _is_covered(path: Path) -> bool:
    return any(path.is_relative_to(folder) and path != Path(folder) for folder in COVERING)
