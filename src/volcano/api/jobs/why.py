"""Why: what refuses or delays a job, as a value with numbers; first blocking reason first.

The scheduler writes it as JSON into the PodGroup annotation `scheduling.volcano.sh/why`, and what shows a job renders
it. The JSON never exceeds 4 KiB: the least frequent counts and then the message give way.

A cycle records what refused the job first (`stage` to `numbers`). What is really in the way is found by an explanation
after it (api.why); once it is known, `reason`, `tier` and `text` have it, and it is what people are shown.
"""

from __future__ import annotations

from typing import Final

import msgspec

MAX_ANNOTATION_BYTES: Final = 4096

QUEUE: Final = "queue"  # the queue is closed or unknown
ENQUEUE: Final = "enqueue"  # the job is not admitted to its queue
QUOTA: Final = "quota"  # the queue may not have more
GANG: Final = "gang"  # too few pods exist, or too few fit
FIT: Final = "fit"  # no node takes a task
RESERVED: Final = "reserved"  # it would delay a job that comes first
WAIT: Final = "wait"  # room is promised but not free yet
BIND: Final = "bind"  # the node was chosen, binding failed
STAGES: Final = (QUEUE, ENQUEUE, QUOTA, GANG, FIT, RESERVED, WAIT, BIND)


class Why(msgspec.Struct, frozen=True, omit_defaults=True):
    """`counts`: nodes per cause, largest first; `numbers`: what the sentence speaks of, by name.

    `reason` is a name of docs/reference/reasons.md; it, `tier` and `text` are empty until the reason is found.
    """

    stage: str
    cause: str
    plugin: str = ""
    message: str = ""
    counts: dict[str, int] = {}
    numbers: dict[str, float] = {}
    reason: str = ""
    tier: str = ""
    text: str = ""

    def is_news(self, before: Why | None) -> bool:
        """Whether stage, cause or reason changed; mere numbers are no news."""
        if before is None or self.reason != before.reason:
            return True
        return (self.stage, self.cause, self.plugin) != (before.stage, before.cause, before.plugin)

    def __str__(self) -> str:
        """One line for people."""
        if self.text:
            return self.text
        causes = ", ".join(f"{count} {'node' if count == 1 else 'nodes'}: {cause}" for cause, count in self._counted())
        return "; ".join(part for part in (self.message or self.cause, causes) if part)

    def _counted(self) -> list[tuple[str, int]]:
        return sorted(self.counts.items(), key=lambda item: (-item[1], item[0]))


def encode_why(why: Why) -> str:
    """JSON within the limit, whatever it takes."""
    counted = why._counted()
    for kept in (len(counted), 16, 4, 0):
        shorter = msgspec.structs.replace(why, counts=dict(counted[:kept]))
        text = msgspec.json.encode(shorter)
        if len(text) <= MAX_ANNOTATION_BYTES:
            return text.decode()
    return msgspec.json.encode(
        msgspec.structs.replace(why, counts={}, numbers={}, cause=why.cause[:128], message=why.message[:512])
    ).decode()


def decode_why(text: str) -> Why | None:
    """What the annotation holds; None when it holds nothing readable."""
    try:
        return msgspec.json.decode(text, type=Why)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
