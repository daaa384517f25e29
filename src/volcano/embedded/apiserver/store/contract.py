"""Store: a revisioned log of objects, the only state of the API server.

Objects are encoded JSON; every write gets the next revision, and the object carries it as its resourceVersion.
Reads see committed objects only. sqlite_store keeps the log on disk, memory_store only in memory; both hold recent
changes and current objects in a revision_log.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

import msgspec

ADDED: Final = "ADDED"
MODIFIED: Final = "MODIFIED"
DELETED: Final = "DELETED"


class ObjectKey(NamedTuple):
    """The key of an object: its resource (`pods`, `jobs.batch.volcano.sh`), its namespace if it has one, its name."""

    resource: str
    namespace: str
    name: str


class Index(msgspec.Struct, frozen=True, gc=False):
    """Labels and selectable fields, so that objects need not be decoded to be matched."""

    labels: Mapping[str, str]
    fields: Mapping[str, str]


class Stored:
    """One object at one revision. The index is computed on first use.

    `shaped_by` names what pruned and defaulted the object in this process: doing so again would change nothing.
    """

    __slots__ = ("index", "key", "raw", "revision", "shaped_by")

    def __init__(self, key: ObjectKey, revision: int, raw: bytes, index: Index | None = None) -> None:
        self.key = key
        self.revision = revision
        self.raw = raw
        self.index = index
        self.shaped_by: object = None


class LoggedChange:
    """One entry of the log: the object as it became (or as it last was), and what it was before."""

    __slots__ = ("encoded", "kind", "previous", "stored")

    def __init__(self, kind: str, stored: Stored, previous: Stored | None) -> None:
        self.kind = kind
        self.stored = stored
        self.previous = previous
        self.encoded: dict[object, bytes] = {}

    @property
    def revision(self) -> int:
        return self.stored.revision


class Write(msgspec.Struct, frozen=True):
    """A put or a delete, given that the object is still at `expected` (0: that it does not exist).

    `encode` is called with the revision the write gets, since the object carries it.
    """

    key: ObjectKey
    expected: int
    encode: Callable[[int], bytes]
    deletes: bool = False
    index: Index | None = None


class Stale(Exception):
    """The object is no longer at the expected revision; read it again."""


class Compacted(Exception):
    """The revision is older than what the log still holds."""

    def __init__(self, oldest: int) -> None:
        super().__init__(f"revisions up to {oldest} were compacted")
        self.oldest = oldest


class FutureRevision(Exception):
    """The revision has not happened yet."""


class StoreFailed(Exception):
    """The write could not be made durable; nothing of it happened."""


class Store(Protocol):
    """A revisioned log of objects. Reads are synchronous and see exactly what was committed."""

    @property
    def revision(self) -> int:
        """The newest committed revision."""
        ...

    @property
    def compacted(self) -> int:
        """Changes up to this revision were compacted."""
        ...

    def find(self, key: ObjectKey) -> Stored | None: ...

    def scan(self, resource: str, namespace: str = "", *, revision: int | None = None) -> Sequence[Stored]:
        """All objects of a resource in key order, now or as they were at a revision."""
        ...

    def page(
        self, resource: str, namespace: str, *, revision: int, after: tuple[str, str] | None, limit: int
    ) -> tuple[Sequence[Stored], int]:
        """At most `limit` objects after a (namespace, name), as of a revision, and how many more follow."""
        ...

    def count(self, resource: str) -> int: ...

    def resources(self) -> Sequence[str]:
        """The resources that have, or recently had, an object."""
        ...

    def position(self, resource: str, revision: int) -> int:
        """Where in the resource's log the changes after a revision begin; Compacted if they are no longer all there."""
        ...

    def changes(self, resource: str, position: int) -> Sequence[LoggedChange]:
        """The resource's changes from a position on; Compacted if some of them are gone."""
        ...

    def subscribe(self, listener: Callable[[Sequence[LoggedChange]], None]) -> None:
        """Call the listener with every committed batch, in order, on the event loop."""
        ...

    async def write(self, write: Write) -> Stored:
        """Returns once committed. Raises Stale or StoreFailed."""
        ...

    async def close(self) -> None: ...
