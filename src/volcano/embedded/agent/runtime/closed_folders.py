"""Which folders of the machine the user of a container may not enter, and which programs in them it needs.

In place of such a folder the container sees one of its own, with nothing in it but these programs and its volumes:
root's home stays closed, and the interpreter below it can be used.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from volcano.api.kubelet import AgentContainer
from volcano.embedded.agent.containers.images import CommandLine
from volcano.embedded.agent.kernel.file_rights import may
from volcano.embedded.agent.runtime.container_rights import User
from volcano.embedded.agent.runtime.covered_programs import is_covered, named_environments, own_programs

BIN_FOLDERS: Final = ("bin", "sbin")


class UserView(msgspec.Struct, frozen=True):
    """What differs for a container that does not run as root."""

    closed: tuple[Path, ...] = ()  # folders that the container sees as folders of its own
    programs: Mapping[Path, Path] = msgspec.field(default_factory=dict)  # what it sees in them: path → real path
    has_own_home: bool = False


def view_of(
    user: User,
    groups: Collection[int],
    container: AgentContainer,
    line: CommandLine,
    *,
    home: Path,
    writable: Iterable[Path] = (),
) -> UserView:
    """The view of a container with the machine's files; one with the files of an image has only a home of its own."""
    if line.root != "/":
        return UserView((home,), has_own_home=True)

    known: dict[str, str] = {}
    of_user = {user[1], *groups}

    def closed(path: Path) -> Path | None:
        return None if is_covered(path) else closed_folder(path, user[0], of_user, known)

    programs = _needed_programs(line, container, home, closed)
    places = (*programs, *writable, *(Path(mount.mount_path).parent for mount in container.volume_mounts))
    found = {each for path in places if (each := closed(path)) is not None}
    has_own_home = closed(home) is not None
    if has_own_home:
        found.add(home)
    return UserView(tuple(sorted(found)), programs, has_own_home)


def closed_folder(path: Path, uid: int, groups: Collection[int], known: dict[str, str] | None = None) -> Path | None:
    """The topmost folder on the way to a path, or the path itself, that this user may not enter.

    `known` keeps the answers of one container, whose paths have most folders in common; an empty text is none.
    """
    found = _closed(str(path), uid, groups, {} if known is None else known)
    return Path(found) if found else None


def _closed(path: str, uid: int, groups: Collection[int], known: dict[str, str]) -> str:
    if path in known:
        return known[path]
    above = os.path.dirname(path)
    answer = _closed(above, uid, groups, known) if above != path else ""
    if not answer:
        try:
            found = os.stat(path)
            is_closed = stat.S_ISDIR(found.st_mode) and not may(stat.S_IXOTH, found, uid, groups)
            answer = path if is_closed else ""
        except OSError:
            pass  # what does not exist is not closed
    known[path] = answer
    return answer


def _needed_programs(
    line: CommandLine, container: AgentContainer, home: Path, closed: Callable[[Path], Path | None]
) -> dict[Path, Path]:
    """What the container needs of closed folders.

    That is this interpreter, this package, environments and the SIF image that the container names, and what the images
    file names as the image's program.
    """
    named = named_environments(line, (each.value for each in container.env), is_hidden=lambda path: bool(closed(path)))
    images = [Path(each) for each in (line.apptainer, _installation(line.program, home)) if each.startswith("/")]
    real = {**own_programs(), **{path: Path(os.path.realpath(path)) for path in images}}
    paths = {**named, **real, **{each: each for each in real.values()}}  # a link may lead to the real one
    wanted = [each for each in sorted(paths) if closed(each) is not None and not home.is_relative_to(each)]
    outer = [each for each in wanted if not any(each != other and each.is_relative_to(other) for other in wanted)]
    return {each: paths[each] for each in outer}


def _installation(program: str, home: Path) -> str:
    """The folder above the program's bin folder, which has its libraries; the program alone where that is the home."""
    folder = os.path.dirname(program)
    above = os.path.dirname(folder)
    return above if os.path.basename(folder) in BIN_FOLDERS and not home.is_relative_to(above) else program
