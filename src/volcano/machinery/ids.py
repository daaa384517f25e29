"""Names and ids that must not repeat: uids, generateName suffixes, random secrets.

RandomIds asks the operating system; SeededIds gives the same row of ids for the same seed, for simulations.
"""

from __future__ import annotations

import hashlib
import os
import uuid
from typing import Final, Protocol

ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
"""Kubernetes' letters for generated names: no vowels, so that no words appear."""
SUFFIX_CHARACTERS: Final = 5
ENTROPY_PAGE_BYTES: Final = 4096


class Ids(Protocol):
    def uid(self) -> str: ...

    def suffix(self) -> str:
        """What generateName is completed with."""
        ...

    def token(self) -> bytes:
        """32 random bytes, for secrets."""
        ...


class RandomIds:
    """From the operating system, fetched by the page: each system call gives up the interpreter's lock."""

    def __init__(self) -> None:
        self._page = b""
        self._at = 0

    def uid(self) -> str:
        return str(uuid.UUID(bytes=self._take(16), version=4))

    def suffix(self) -> str:
        return _letters(self._take(SUFFIX_CHARACTERS * 2))

    def token(self) -> bytes:
        return os.urandom(32)

    def _take(self, size: int) -> bytes:
        if self._at + size > len(self._page):
            self._page, self._at = os.urandom(ENTROPY_PAGE_BYTES), 0
        self._at += size
        return self._page[self._at - size : self._at]


class SeededIds:
    """The same for the same seed."""

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed
        self._count = 0

    def uid(self) -> str:
        return str(uuid.UUID(bytes=self.token()[:16], version=4))

    def suffix(self) -> str:
        return _letters(self.token())

    def token(self) -> bytes:
        self._count += 1
        return hashlib.sha256(f"{self._seed}/{self._count}".encode()).digest()


def _letters(entropy: bytes) -> str:
    pairs = zip(entropy[::2], entropy[1::2])
    return "".join(ALPHABET[(high << 8 | low) % len(ALPHABET)] for high, low in pairs)[:SUFFIX_CHARACTERS]
