"""How often one user may ask for trials (explanations, simulations), and how many questions may wait at once.

Each question costs as much as a cycle of the scheduler. Who asks is known inside the embedded system; behind a real API
server its own fairness decides between users, and only the number of waiting questions is bounded here.
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Iterator
from math import ceil
from typing import Final

from volcano.machinery.clock import Clock
from volcano.machinery.pace import Pace
from volcano.machinery.transport import User

MAX_WAITING_QUESTIONS: Final = 32
MAX_WAITING_QUESTIONS_OF_USER: Final = 8
QUESTIONS_AT_ONCE: Final = 100
QUESTIONS_PER_SECOND: Final = 10.0
MAX_REMEMBERED_USERS: Final = 1_000


class TooManyQuestions(Exception):
    """The message says what is too much; `seconds` is when to ask again."""

    def __init__(self, message: str, seconds: float = 1.0) -> None:
        super().__init__(message)
        self.seconds = max(1, ceil(seconds))


class QuestionLimits:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: dict[str, int] = {}
        self._paces: OrderedDict[str, Pace] = OrderedDict()

    @contextlib.contextmanager
    def admitted(self, user: User | None) -> Iterator[None]:
        """TooManyQuestions where this user, or all together, ask too much."""
        name = user.name if user is not None else ""
        self._check(name)
        self._waiting[name] = self._waiting.get(name, 0) + 1
        try:
            yield
        finally:
            self._waiting[name] -= 1
            if not self._waiting[name]:
                del self._waiting[name]

    def _check(self, name: str) -> None:
        if sum(self._waiting.values()) >= MAX_WAITING_QUESTIONS:
            raise TooManyQuestions(f"{MAX_WAITING_QUESTIONS} questions wait for the scheduler; ask again in a second")
        if not name:
            return
        if self._waiting.get(name, 0) >= MAX_WAITING_QUESTIONS_OF_USER:
            limit = MAX_WAITING_QUESTIONS_OF_USER
            raise TooManyQuestions(f"{limit} questions of {name} wait for the scheduler; ask again in a second")
        pace, now = self._pace(name), self._clock.monotonic()
        wait = pace.wait(now)
        if wait > 0:
            often = f"more than {QUESTIONS_PER_SECOND:g} questions a second"
            raise TooManyQuestions(f"{name} asks the scheduler {often}; ask again in {ceil(wait)} s", wait)
        pace.take(now)

    def _pace(self, name: str) -> Pace:
        if name not in self._paces:
            self._paces[name] = Pace(QUESTIONS_AT_ONCE, QUESTIONS_PER_SECOND, self._clock.monotonic())
            if len(self._paces) > MAX_REMEMBERED_USERS:
                self._paces.popitem(last=False)
        self._paces.move_to_end(name)
        return self._paces[name]
