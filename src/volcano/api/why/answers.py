"""WhyAnswer: what POST /explain answers and `vcctl explain` shows: the reason first, whether waiting helps, changes."""

from __future__ import annotations

from typing import Any

import msgspec

from volcano.api.jobs.explanation import QueueStanding, TaskNodes
from volcano.api.why.reasons import Finding
from volcano.api.why.tiers import Tier

PATCH, REPLACE, CREATE, COMMAND = "patch", "replace", "create", "command"
NOW, LATER = "now", "later"


class ChangedObject(msgspec.Struct, frozen=True, rename="camel"):
    """The object that a change is made to; `namespace` is empty for cluster-wide kinds."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""


class ProposedChange(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """One change, as a sentence, as a command line, and as what `--apply` does.

    `action`: patch the object, replace it (delete and create again with the patch, for fields that may not be changed),
    create `body`, or send the command in `body`. `patch` is a JSON patch.
    """

    sentence: str
    command: str
    object: ChangedObject
    action: str = PATCH
    patch: list[dict[str, Any]] = []
    body: dict[str, Any] = {}
    others: list[ChangedObject] = []  # which get the same patch
    by: str = "you"  # or "an administrator"
    starts: str = NOW  # or later: it can run then, and waits for room that others hold


class WhyAnswer(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """`text` is the reason as a sentence; `waiting_helps` is false when something has to be changed."""

    about: str
    phase: str
    reason: str
    tier: str
    text: str
    waiting_helps: bool
    facts: dict[str, str | int] = {}
    changes: list[ProposedChange] = []
    also: list[str] = []  # further sentences, in order
    story: list[str] = []  # what happened, in order
    tasks: list[TaskNodes] = []
    queue: QueueStanding | None = None


def answer_with(found: Finding, about: str, phase: str, **more: Any) -> WhyAnswer:
    tier: Tier = found.tier
    return WhyAnswer(about, phase, found.reason, str(tier), str(found), tier.waiting_helps, dict(found.facts), **more)
