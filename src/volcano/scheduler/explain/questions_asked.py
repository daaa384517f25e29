"""WhyQuestion: what POST /explain is asked, and what the scheduler knows when it is asked.

The asker adds what the scheduler does not follow: the object itself, its events, the last lines of logs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import msgspec

from volcano.api.core import Event, Pod
from volcano.api.decode import Unreadable, decode_object
from volcano.api.meta import JSON
from volcano.api.why.kinds import KNOWN, explained_kind
from volcano.scheduler.core.snapshot import Snapshot
from volcano.scheduler.explain.trials import TrialRules

MAX_EVENTS: Final = 1000
MAX_OBJECTS: Final = 2000


class BadQuestion(ValueError):
    """The question cannot be answered; the message gives the reason."""


class WhyQuestion(msgspec.Struct, frozen=True):
    """`object`: the body of what is asked about; `objects`: those that belong to it; `logs`: last lines by pod."""

    kind: str
    name: str
    namespace: str = "default"
    object: JSON | None = None
    objects: list[JSON] = []
    events: list[JSON] = []
    logs: dict[str, str] = {}
    known: dict[str, list[str]] = {}  # names of existing Secrets, ConfigMaps, ServiceAccounts, by kind
    changes: bool = True
    details: bool = True  # nodes by stage, the queue, the story

    @property
    def about(self) -> str:
        return f"{self.kind}/{self.name}"


def read_question(body: Any) -> WhyQuestion:
    try:
        question = msgspec.convert(body, WhyQuestion)
    except msgspec.ValidationError as error:
        raise BadQuestion(f"the question cannot be read: {error}") from error
    kind = explained_kind(question.kind)
    if kind is None:
        raise BadQuestion(f"kind: {question.kind!r} cannot be explained; known: {', '.join(KNOWN)}")
    if len(question.events) > MAX_EVENTS or len(question.objects) > MAX_OBJECTS:
        raise BadQuestion(f"at most {MAX_EVENTS} events and {MAX_OBJECTS} objects")
    if question.object is not None and not isinstance(question.object, dict):
        raise BadQuestion("object: it is not an object")
    return msgspec.structs.replace(question, kind=kind.asked)


def events_of(question: WhyQuestion) -> list[Event]:
    read = []
    for body in question.events:
        try:
            read.append(decode_object(Event, body))
        except Unreadable:
            continue
    return sorted(read, key=lambda event: str(event.last_timestamp or event.metadata.creation_timestamp or ""))


@dataclass(slots=True)
class KnownCluster:
    """What the scheduler knows just now. `expand` makes the PodGroup and pods of a Volcano Job, as its controller."""

    snapshot: Snapshot
    rules: TrialRules
    pods: Callable[[str], Iterable[Pod]]  # of a namespace, also those of other schedulers
    expand: Callable[[JSON], Any]
    now: datetime
    configuration: str = ""
    sources: dict[str, str] = field(default_factory=dict)
