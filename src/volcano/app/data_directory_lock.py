"""The data directory of one system: others are kept out of it, users and a second system alike."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import click

log = logging.getLogger(__name__)


class DataDirectoryInUse(click.ClickException):
    """Another `volcano up` holds the data directory."""


class UnusableDataDirectory(click.ClickException):
    """The data directory cannot be written."""


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep a second system away from this data directory for as long as this process lives."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        _keep_others_out(folder)
        handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise UnusableDataDirectory(
            f"nothing can be kept in {folder}: {error.strerror}; choose another --data-dir"
        ) from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(handle, 32, 0).decode(errors="replace").strip()
            whom = f" (process {holder})" if holder else ""
            raise DataDirectoryInUse(
                f"{folder} is in use by another `volcano up`{whom}; stop that one, or choose another --data-dir"
            ) from error
        os.ftruncate(handle, 0)
        os.pwrite(handle, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(handle)


def _keep_others_out(folder: Path) -> None:
    """Only the owner enters the data directory, which has all Secrets and keys in it."""
    found = folder.stat()
    mode = found.st_mode
    if mode & stat.S_ISVTX:
        raise UnusableDataDirectory(f"{folder} is shared by all users; choose a --data-dir of its own inside it")
    if found.st_uid != os.geteuid():
        raise _of_another(folder, found.st_uid)
    if mode & 0o022:  # others could put links and files of theirs in it
        for entry in folder.iterdir():
            if (owner := entry.lstat().st_uid) != os.geteuid():
                raise _of_another(entry, owner)
    if mode & 0o077:
        folder.chmod(0o700)
        log.warning("%s could be entered by other users; now only its owner can", folder)


def _of_another(path: Path, owner: int) -> UnusableDataDirectory:
    return UnusableDataDirectory(
        f"{path} belongs to another user ({owner}), who could read and replace all Secrets and keys; "
        f"choose another --data-dir, or give it to this user ({os.geteuid()})"
    )
