"""Who is signed in: sessions by cookie, links that sign in once, and how often a sign-in may fail."""

from __future__ import annotations

import hmac
from collections import OrderedDict, deque
from collections.abc import Callable
from datetime import timedelta
from typing import Final

import msgspec

from volcano.dashboard.callers import Caller
from volcano.machinery.clock import Clock
from volcano.machinery.ids import Ids

MAX_SESSIONS: Final = 1_000
IDLE_TIME: Final = timedelta(hours=12)
LIFE_TIME: Final = timedelta(days=7)
MAX_FAILURES_PER_ADDRESS: Final = 10
MAX_FAILURES: Final = 100
FAILURES_COUNT_FOR: Final = timedelta(minutes=1)
MAX_ADDRESSES: Final = 10_000


class SignedIn(msgspec.Struct):
    """`secret` must come with every write; `streams` counts open event streams."""

    id: str
    secret: str
    caller: Caller
    began: float
    used: float
    streams: int = 0


class Sessions:
    """The least recently used one ends when there are too many."""

    def __init__(self, clock: Clock, ids: Ids) -> None:
        self._clock, self._ids = clock, ids
        self._sessions: OrderedDict[str, SignedIn] = OrderedDict()

    def begin(self, caller: Caller, id: str = "") -> SignedIn:
        """Under a random id, unless one is given that is as hard to guess."""
        now = self._clock.monotonic()
        session = SignedIn(id or self._ids.token().hex(), self._ids.token().hex(), caller, now, now)
        self._sessions[session.id] = session
        while len(self._sessions) > MAX_SESSIONS:
            self._sessions.popitem(last=False)
        return session

    def find(self, id: str) -> SignedIn | None:
        session, now = self._sessions.get(id), self._clock.monotonic()
        if session is None:
            return None
        if now - session.used > IDLE_TIME.total_seconds() or now - session.began > LIFE_TIME.total_seconds():
            del self._sessions[id]
            return None
        session.used = now
        self._sessions.move_to_end(id)
        return session

    def end(self, id: str) -> None:
        self._sessions.pop(id, None)


class OneTimeToken:
    """A secret in a link: the first person who brings it is signed in, and the next one is announced."""

    def __init__(self, ids: Ids, announce: Callable[[str], None] = lambda token: None, *, first: str = "") -> None:
        self._ids, self._announce = ids, announce
        self.current = first or ids.token().hex()

    def take(self, given: str) -> bool:
        if not hmac.compare_digest(given.encode(), self.current.encode()):
            return False
        self.current = self._ids.token().hex()
        self._announce(self.current)
        return True


class FailedLogins:
    """Counts failures of the last minute, by address and in all."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._times: dict[str, deque[float]] = {}
        self._all: deque[float] = deque(maxlen=MAX_FAILURES)

    def too_many(self, address: str) -> bool:
        return self._recent(self._all) >= MAX_FAILURES or (
            address in self._times and self._recent(self._times[address]) >= MAX_FAILURES_PER_ADDRESS
        )

    def count(self, address: str) -> None:
        now = self._clock.monotonic()
        if len(self._times) >= MAX_ADDRESSES:
            self._times = {known: times for known, times in self._times.items() if self._recent(times)}
        self._times.setdefault(address, deque(maxlen=MAX_FAILURES_PER_ADDRESS)).append(now)
        self._all.append(now)

    def _recent(self, times: deque[float]) -> int:
        since = self._clock.monotonic() - FAILURES_COUNT_FOR.total_seconds()
        while times and times[0] < since:
            times.popleft()
        return len(times)
