"""The states of a Queue as one table: the transition for opening, closing and syncing in each state."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class QueueState(StrEnum):
    """The values of a Queue's `status.state`."""

    OPEN = "Open"
    CLOSING = "Closing"
    CLOSED = "Closed"
    UNKNOWN = "Unknown"


class QueueAction(StrEnum):
    """The actions of Commands for queues."""

    OPEN = "OpenQueue"
    CLOSE = "CloseQueue"
    SYNC = "SyncQueue"


class Act(StrEnum):
    """The transition to carry out."""

    OPEN = "open"
    CLOSE = "close"
    SETTLE = "settle"


SHUT: Final = (QueueState.CLOSING, QueueState.CLOSED)

TRANSITIONS: Final = {
    (QueueState.OPEN, QueueAction.CLOSE): Act.CLOSE,
    (QueueState.UNKNOWN, QueueAction.CLOSE): Act.CLOSE,
    (QueueState.UNKNOWN, QueueAction.OPEN): Act.OPEN,
    (QueueState.CLOSING, QueueAction.OPEN): Act.OPEN,
    (QueueState.CLOSED, QueueAction.OPEN): Act.OPEN,
}
"""A pair that is not listed only settles: a closing queue closes once it is empty, any other stays as it is."""


def state_from(text: str) -> QueueState:
    """A new queue has no state yet and counts as open; an unknown state counts as Unknown."""
    if not text:
        return QueueState.OPEN
    return QueueState(text) if text in tuple(QueueState) else QueueState.UNKNOWN


def act_on(state: QueueState, asked: QueueAction) -> Act:
    return TRANSITIONS.get((state, asked), Act.SETTLE)


def settled(state: QueueState, *, busy: bool) -> QueueState:
    """A closing queue is closed once its last PodGroup is gone."""
    return QueueState.CLOSED if state is QueueState.CLOSING and not busy else state


def closed(*, busy: bool) -> QueueState:
    return QueueState.CLOSING if busy else QueueState.CLOSED
