"""Which connections a server keeps: bounds for all, for each address, for each identity, and a reserve for some.

Clients that have not proven an identity compete only with each other: when there are too many of them, the one that
has been idle longest is closed. A flood of anonymous clients thus never takes the place of a client with credentials.
"""

from __future__ import annotations

from typing import Final, Protocol

import msgspec


class ConnectionLimits(msgspec.Struct, frozen=True):
    """How many connections may be open at a time."""

    total: int = 4096
    reserve: int = 64
    """Beyond the total, for those who may use the reserve."""
    anonymous: int = 1024
    """Connections without a proven identity."""
    anonymous_per_address: int = 512
    per_identity: int = 1024

    def within(self, open_files: int) -> ConnectionLimits:
        """These bounds, or smaller ones where a process may open fewer files than twice the total."""
        share = min(1.0, open_files / (2 * self.total))
        anonymous, for_address, for_identity = (
            max(1, int(bound * share)) for bound in (self.anonymous, self.anonymous_per_address, self.per_identity)
        )
        return ConnectionLimits(int(self.total * share), self.reserve, anonymous, for_address, for_identity)


class TrackedConnection(Protocol):
    """What the table needs to know of a connection."""

    @property
    def is_busy(self) -> bool:
        """Whether a request is being answered on it."""
        ...

    def close_now(self) -> None: ...


class _Entry(msgspec.Struct):
    address: str
    identity: str
    may_use_reserve: bool


_ANONYMOUS: Final = ("anonymous", "")
_Group = tuple[str, str]


class ConnectionTable:
    """All open connections, oldest first."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self._entries: dict[TrackedConnection, _Entry] = {}
        self._groups: dict[_Group, dict[TrackedConnection, None]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def opened(
        self, connection: TrackedConnection, address: str, identity: str = "", *, may_use_reserve: bool = False
    ) -> None:
        """Add a connection, and close others or itself where a bound is exceeded."""
        self._entries[connection] = _Entry(address, identity, may_use_reserve)
        self._join(connection)

    def proved(self, connection: TrackedConnection, identity: str, *, may_use_reserve: bool = False) -> None:
        """The client has shown who it is."""
        entry = self._entries.get(connection)
        if entry is None or entry.identity == identity:
            return
        self._leave(connection)
        entry.identity, entry.may_use_reserve = identity, may_use_reserve
        self._join(connection)

    def used(self, connection: TrackedConnection) -> None:
        """A request came in: the connection is the last of its groups to be closed."""
        for group in self._groups_of(connection):
            members = self._groups[group]
            del members[connection]
            members[connection] = None

    def closed(self, connection: TrackedConnection) -> None:
        if connection in self._entries:
            self._leave(connection)
            del self._entries[connection]

    def _groups_of(self, connection: TrackedConnection) -> tuple[_Group, ...]:
        entry = self._entries.get(connection)
        if entry is None:
            return ()
        if entry.identity:
            return (("identity", entry.identity),)
        return (("address", entry.address), _ANONYMOUS)

    def _join(self, connection: TrackedConnection) -> None:
        for group in self._groups_of(connection):
            members = self._groups.setdefault(group, {})
            members[connection] = None
            if len(members) > self._bound(group):
                self._close_one(members, connection)
        entry = self._entries.get(connection)
        if entry is not None and len(self._entries) > self._limits.total + self._limits.reserve * entry.may_use_reserve:
            self._close_one(self._groups.get(_ANONYMOUS, {}), connection)

    def _leave(self, connection: TrackedConnection) -> None:
        for group in self._groups_of(connection):
            members = self._groups[group]
            members.pop(connection, None)
            if not members:
                del self._groups[group]

    def _bound(self, group: _Group) -> int:
        match group[0]:
            case "identity":
                return self._limits.per_identity
            case "address":
                return self._limits.anonymous_per_address
        return self._limits.anonymous

    def _close_one(self, members: dict[TrackedConnection, None], newest: TrackedConnection) -> None:
        """Close the member that has been idle longest; the newest where all others are busy."""
        victim = next((each for each in members if each is not newest and not each.is_busy), newest)
        self.closed(victim)
        victim.close_now()
