"""Files that only their owner may read: made so, tightened when they are not, and replaced in one step that lasts."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Final

PRIVATE_FILE_MODE: Final = 0o600


def make_private(path: Path) -> bool:
    """Take a file's rights from group and others; whether they had any. A file that is not there is left so."""
    with contextlib.suppress(FileNotFoundError):
        if path.stat().st_mode & 0o077:
            path.chmod(PRIVATE_FILE_MODE)
            return True
    return False


def touch_private(path: Path) -> None:
    """An empty file for its owner only; SQLite gives its other files the same mode."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE_MODE))


def replace_private_file(path: Path, content: bytes) -> None:
    """Write a file as a whole: after a crash it has the old content or the new one."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    handle = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, PRIVATE_FILE_MODE)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    move_durably(aside, path)


def move_durably(source: Path, target: Path) -> None:
    """Rename within a folder, and make sure that the folder remembers it."""
    source.replace(target)
    folder = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
