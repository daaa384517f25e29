"""The accounts that a container sees: /etc/passwd and /etc/group of the machine, with one of the container's user.

Programs ask for the name and the home of their user: ssh and Java do not start without.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from volcano.embedded.agent.runtime.container_rights import User

NAME: Final = "nonroot"
"""As images without an account for their user call it."""
SHELL: Final = "/bin/sh"
SYSTEM: Final = Path("/etc")
PASSWD, GROUP = "passwd", "group"


class PodAccounts:
    """The files with the default user, made once and again when those of the machine have changed."""

    def __init__(self, folder: Path, user: User | None) -> None:
        self._folder, self._user = folder, user
        self._made_from: tuple[object, ...] = ()

    def files(self, home: str) -> Mapping[Path, Path]:
        """Files of the machine, and what containers see in their place."""
        if self._user is None:
            return {}
        state = (home, *(_stamp(SYSTEM / name) for name in (PASSWD, GROUP)))
        if state != self._made_from:
            self._folder.mkdir(mode=0o755, exist_ok=True)
            write_accounts(self._folder, self._user, home)
            self._made_from = state
        return {SYSTEM / name: self._folder / name for name in (PASSWD, GROUP)}


def write_accounts(folder: Path, user: User, home: str) -> tuple[str, ...]:
    """Write both files, in which this user has this home; returns their names."""
    for name, text in ((PASSWD, passwd_with(_read(PASSWD), user, home)), (GROUP, group_with(_read(GROUP), user[1]))):
        fresh = folder / f".{name}.fresh"
        fresh.write_text(text)
        fresh.chmod(0o644)
        fresh.rename(folder / name)  # containers that run keep the file that they have
    return PASSWD, GROUP


def passwd_with(text: str, user: User, home: str) -> str:
    """The accounts with one of this user: its own with another home, or a new one."""
    lines = [line.split(":") for line in text.splitlines() if line]
    own = next((line for line in lines if len(line) == 7 and line[2] == str(user[0])), None)
    name = own[0] if own is not None else NAME
    others = [line for line in lines if line is not own and line[0] != name]
    return _joined([*others, [name, "x", str(user[0]), str(user[1]), name, home, SHELL]])


def group_with(text: str, group: int) -> str:
    lines = [line.split(":") for line in text.splitlines() if line]
    is_known = any(len(line) > 2 and line[2] == str(group) for line in lines)
    return _joined([*lines, *([] if is_known else [[NAME, "x", str(group), ""]])])


def _joined(lines: list[list[str]]) -> str:
    return "".join(":".join(line) + "\n" for line in lines)


def _read(name: str) -> str:
    try:
        return (SYSTEM / name).read_text(errors="surrogateescape")
    except OSError:
        return ""


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino
