"""The states of a Queue as one table: what opening, closing and looking again make of each."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class State(StrEnum):
    """What a Queue's `status.state` says."""

    OPEN = "Open"
    CLOSING = "Closing"
    CLOSED = "Closed"
    UNKNOWN = "Unknown"


class Asked(StrEnum):
    """What someone wants of a queue, as Commands spell it."""

    OPEN = "OpenQueue"
    CLOSE = "CloseQueue"
    SYNC = "SyncQueue"


class Act(StrEnum):
    """What is done about it."""

    OPEN = "open"
    CLOSE = "close"
    SETTLE = "settle"


SHUT: Final = (State.CLOSING, State.CLOSED)

TRANSITIONS: Final = {
    (State.OPEN, Asked.CLOSE): Act.CLOSE,
    (State.UNKNOWN, Asked.CLOSE): Act.CLOSE,
    (State.UNKNOWN, Asked.OPEN): Act.OPEN,
    (State.CLOSING, Asked.OPEN): Act.OPEN,
    (State.CLOSED, Asked.OPEN): Act.OPEN,
}
"""A pair that is not listed only settles: a closing queue closes once it is empty, any other stays as it is."""


def state_from(text: str) -> State:
    """A new queue has no state yet and counts as open; a word nobody knows counts as Unknown."""
    if not text:
        return State.OPEN
    return State(text) if text in tuple(State) else State.UNKNOWN


def act_on(state: State, asked: Asked) -> Act:
    return TRANSITIONS.get((state, asked), Act.SETTLE)


def settled(state: State, *, busy: bool) -> State:
    """A closing queue is closed once its last PodGroup is gone."""
    return State.CLOSED if state is State.CLOSING and not busy else state


def closed(*, busy: bool) -> State:
    return State.CLOSING if busy else State.CLOSED
