"""The keys that Secrets are encrypted with on disk: AES-256-GCM, each value under the key that its envelope names.

The keys are in a file of their own beside the database. New values are sealed under the current key; older keys stay
until nothing needs them, which is what makes rotation possible.
"""

from __future__ import annotations

import base64
import binascii
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from volcano.embedded.apiserver.store.contract import ObjectKey
from volcano.embedded.apiserver.store.private_files import replace_private_file

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

SEALED_RESOURCES: Final = frozenset({"secrets"})
KEY_BYTES: Final = 32
KEY_ID_BYTES: Final = 8
NONCE_BYTES: Final = 12
_MARK: Final = b"\x00s1"
"""How an envelope begins; JSON never begins so."""


class KeyFileError(Exception):
    """The file of keys is missing or damaged, or lacks a key that a value needs."""


class _KeyFile(msgspec.Struct):
    current: str
    keys: dict[str, str]


class KeyRing:
    """The keys of one database."""

    def __init__(self, path: Path, keys: dict[str, bytes], current: str) -> None:
        self.path = path
        self._keys = keys
        self.current = current
        self._ciphers: dict[str, AESGCM] = {}

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(self._keys)

    def material(self) -> dict[str, bytes]:
        return dict(self._keys)

    def seal(self, key: ObjectKey, value: bytes) -> bytes:
        """The envelope of a value; it opens only for the same object."""
        nonce = os.urandom(NONCE_BYTES)
        sealed = self._cipher(self.current).encrypt(nonce, value, _context(key))
        return _MARK + bytes.fromhex(self.current) + nonce + sealed

    def open(self, key: ObjectKey, envelope: bytes) -> bytes:
        """The value inside an envelope; what is not sealed is returned as it is."""
        from cryptography.exceptions import InvalidTag

        if not is_sealed(envelope):
            return envelope
        at = len(_MARK) + KEY_ID_BYTES
        key_id, nonce = envelope[len(_MARK) : at].hex(), envelope[at : at + NONCE_BYTES]
        if key_id not in self._keys:
            raise KeyFileError(f"{self.path} does not have the key {key_id}")
        try:
            return self._cipher(key_id).decrypt(nonce, envelope[at + NONCE_BYTES :], _context(key))
        except (InvalidTag, ValueError) as error:
            raise KeyFileError(f"the value does not open with the key {key_id} of {self.path}") from error

    def with_new_key(self) -> KeyRing:
        """The same keys and a new current one, on disk before anything is sealed with it."""
        key_id = secrets.token_hex(KEY_ID_BYTES)
        ring = KeyRing(self.path, {**self._keys, key_id: secrets.token_bytes(KEY_BYTES)}, key_id)
        ring.save()
        return ring

    def only_current(self) -> KeyRing:
        """The current key alone; the others are forgotten on disk too."""
        ring = KeyRing(self.path, {self.current: self._keys[self.current]}, self.current)
        ring.save()
        return ring

    def save(self) -> None:
        keys = {key_id: base64.b64encode(key).decode() for key_id, key in self._keys.items()}
        replace_private_file(self.path, msgspec.json.encode(_KeyFile(self.current, keys)) + b"\n")

    def _cipher(self, key_id: str) -> AESGCM:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        if key_id not in self._ciphers:
            self._ciphers[key_id] = AESGCM(self._keys[key_id])
        return self._ciphers[key_id]


def is_sealed(value: bytes) -> bool:
    return value.startswith(_MARK)


def _context(key: ObjectKey) -> bytes:
    return "\0".join(key).encode()


def read_keys(path: Path) -> KeyRing | None:
    """The keys of a file; None when there is no file."""
    try:
        read = msgspec.json.decode(path.read_bytes(), type=_KeyFile)
        keys = {key_id: base64.b64decode(text, validate=True) for key_id, text in read.keys.items()}
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError, binascii.Error, ValueError, RecursionError) as error:
        raise KeyFileError(f"{path} cannot be read: {error}") from error
    if read.current not in keys or any(
        len(key) != KEY_BYTES or len(key_id) != 2 * KEY_ID_BYTES for key_id, key in keys.items()
    ):
        raise KeyFileError(f"{path} is damaged: it has no usable key {read.current!r}")
    return KeyRing(path, keys, read.current)


def keys_of(path: Path) -> KeyRing:
    """The keys of a file, which is made if it is not there."""
    return read_keys(path) or KeyRing(path, {}, "").with_new_key()
