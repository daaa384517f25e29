"""The last step of a write: the object in its stored form, put into the store or taken out of it."""

from __future__ import annotations

from typing import Final

import msgspec

from volcano.api.errors import ServiceUnavailable, TooLarge
from volcano.api.meta import JSON
from volcano.embedded.apiserver.calls import Call
from volcano.embedded.apiserver.store.contract import ObjectKey, Stale, Stored, StoreFailed, Write
from volcano.embedded.apiserver.verbs.conversion import in_storage_version

MAX_OBJECT_BYTES: Final = 2 * 1024 * 1024
"""Of a stored object with its managed fields; many patches would make it grow for ever. etcd's limit is 1.5 MiB."""


async def commit(call: Call, key: ObjectKey, obj: JSON, *, expected: int, dry_run: bool = False) -> tuple[Stored, JSON]:
    """Make the object durable, if the store still has it at `expected`. A dry run only shows what would be stored."""
    stored_form = await in_storage_version(call, obj)
    if dry_run:
        _check_size(msgspec.json.encode(stored_form))
        current = call.backend.store.find(key)
        if (current.revision if current else 0) != expected:
            raise Stale
        if expected:
            obj["metadata"]["resourceVersion"] = str(expected)
        return Stored(key, expected, msgspec.json.encode(obj)), obj
    written = await _write(call, key, stored_form, expected=expected, deletes=False)
    if stored_form is obj and call.backend.admission.keeps_shapes:
        written.shaped_by = call.strategy
    return _as_given(written, obj, stored_form), obj


def _check_size(raw: bytes) -> None:
    if len(raw) > MAX_OBJECT_BYTES:
        raise TooLarge(f"the object would have {len(raw)} bytes; the limit is {MAX_OBJECT_BYTES}")


async def remove(call: Call, stored: Stored, obj: JSON, *, dry_run: bool = False) -> tuple[Stored, JSON]:
    """Take the object out of the store; the log keeps its last state."""
    if dry_run:
        return stored, obj
    stored_form = await in_storage_version(call, obj)
    gone = await _write(call, stored.key, stored_form, expected=stored.revision, deletes=True)
    return _as_given(gone, obj, stored_form), obj


def _as_given(written: Stored, obj: JSON, stored_form: JSON) -> Stored:
    """What was written, in the version in which it was given; a webhook need not be asked again for that."""
    if stored_form is obj:
        return written
    obj["metadata"]["resourceVersion"] = str(written.revision)
    return Stored(written.key, written.revision, msgspec.json.encode(obj), written.index)


async def _write(call: Call, key: ObjectKey, stored_form: JSON, *, expected: int, deletes: bool) -> Stored:
    def encode(revision: int) -> bytes:
        stored_form["metadata"]["resourceVersion"] = str(revision)
        raw = msgspec.json.encode(stored_form)
        if not deletes:
            _check_size(raw)
        return raw

    write = Write(key, expected, encode, deletes=deletes, index=call.served.index(stored_form))
    try:
        return await call.backend.store.write(write)
    except StoreFailed as error:
        raise ServiceUnavailable(f"the write could not be stored: {error}", details={"retryAfterSeconds": 1}) from error
