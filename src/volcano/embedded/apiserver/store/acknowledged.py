"""The last acknowledged revision, in a small file beside the database: it tells a cut log from a log that ended there.

SQLite takes a write-ahead log that is cut or has a flipped bit for one that ends before the damage. The file is written
after each commit and before the client is answered, so it is never ahead of an intact database, even after a crash.
Two slots are written in turn: a crash in the middle of a write leaves the other one.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Final

from volcano.embedded.apiserver.store.private_files import PRIVATE_FILE_MODE, move_durably
from volcano.machinery.clock import Stopwatch

SLOT_BYTES: Final = 512
SLOTS: Final = 2
SECONDS_BETWEEN_SYNCS: Final = 1.0
"""A killed process loses nothing; after a loss of power the file may be this much behind the database."""
_MAGIC: Final = b"volcano-acknowledged 1 "


class AcknowledgedRevision:
    """Writes the file; `read_acknowledged` reads it."""

    def __init__(self, path: Path, revision: int) -> None:
        self.path = path
        aside = path.with_name(f".{path.name}.{os.getpid()}")
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        self._file = os.open(aside, flags, PRIVATE_FILE_MODE)
        self._next = 0
        self._since_sync = Stopwatch()
        for _ in range(SLOTS):
            self.write(revision)
        os.fsync(self._file)
        move_durably(aside, path)

    def write(self, revision: int) -> None:
        os.pwrite(self._file, _slot(revision), self._next * SLOT_BYTES)
        self._next = (self._next + 1) % SLOTS

    def sync_now_and_then(self) -> None:
        if self._since_sync.seconds() >= SECONDS_BETWEEN_SYNCS:
            os.fdatasync(self._file)
            self._since_sync = Stopwatch()

    def close(self) -> None:
        if self._file >= 0:
            os.fsync(self._file)
            os.close(self._file)
            self._file = -1


def read_acknowledged(path: Path) -> int | None:
    """The last acknowledged revision; None when there is no file. ValueError when no slot of it can be read."""
    try:
        content = path.read_bytes()[: SLOTS * SLOT_BYTES]
    except FileNotFoundError:
        return None
    slots = [content[at : at + SLOT_BYTES] for at in range(0, SLOTS * SLOT_BYTES, SLOT_BYTES)]
    revisions = [revision for revision in map(_revision_in, slots) if revision is not None]
    if not revisions:
        raise ValueError("no slot of it can be read")
    return max(revisions)


def _slot(revision: int) -> bytes:
    said = _MAGIC + b"%020d" % revision
    return (said + b" " + hashlib.blake2b(said, digest_size=16).hexdigest().encode() + b"\n").ljust(SLOT_BYTES, b"\0")


def _revision_in(slot: bytes) -> int | None:
    digits = slot[len(_MAGIC) : len(_MAGIC) + 20]
    return int(digits) if digits.isdigit() and _slot(int(digits)) == slot else None
