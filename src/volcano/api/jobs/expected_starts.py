"""The scheduler's answer to GET /expected-starts: when waiting jobs will start, and what that depends on."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

STATED, LEARNED, DEFAULT = "stated", "learned", "default"
BASES: Final = (STATED, LEARNED, DEFAULT)
"""Where the job's own estimate comes from."""


class ExpectedStart(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """`start` is expected, from `earliest` to `latest` are likely; None: not within the time that was played.

    `after` are the jobs whose end it waits for in the end; `runs` is how many past runs a learned estimate rests on.
    """

    queue: str = ""
    start: datetime | None = None
    earliest: datetime | None = None
    latest: datetime | None = None
    after: tuple[str, ...] = ()
    basis: str = DEFAULT
    runs: int = 0


class ExpectedStarts(msgspec.Struct, frozen=True, rename="camel"):
    """By namespace/name of the Job, or of the PodGroup where no Job made it; as of `at`."""

    at: datetime
    jobs: dict[str, ExpectedStart]
