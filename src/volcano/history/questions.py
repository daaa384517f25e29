"""What can be asked of the history, as values. Each question carries the namespaces that the asker may see."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

MAX_JOBS_PER_PAGE: Final = 1000
MAX_DAYS: Final = 400
MAX_SAMPLES: Final = 20_000
MAX_PODS: Final = 20_000
SORTS: Final = (
    "created",
    "started",
    "ended",
    "name",
    "namespace",
    "queue",
    "user",
    "phase",
    "waited",
    "ran",
    "cpu",
    "memory",
    "gpu",
)
GROUPS: Final = ("queue", "user", "namespace", "phase", "kind")
"""What jobs are counted by; also `label:KEY`."""
USAGE_GROUPS: Final = ("day", "queue", "user", "namespace")

Namespaces = frozenset[str] | None
"""The namespaces whose jobs the asker may list; None: all."""


class QuestionRefused(ValueError):
    """The question cannot be answered as it is asked; the message names the parameter."""


class JobQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """Which jobs. Without times all that are kept; `at` asks for the jobs that existed then, in their phase of then."""

    visible: Namespaces = None
    uid: str = ""
    namespace: str = ""
    name: str = ""
    text: str = ""  # a part of the name
    user: str = ""
    queue: str = ""
    kind: str = ""
    node: str = ""  # that a pod of the job ran on
    phases: tuple[str, ...] = ()
    states: tuple[str, ...] = ()  # waiting, running, ended
    label: str = ""  # KEY or KEY=VALUE
    since: datetime | None = None  # existed unfinished at this time or later
    until: datetime | None = None  # submitted before this time
    ended_since: datetime | None = None
    ended_until: datetime | None = None
    at: datetime | None = None
    sort: str = "created"
    descending: bool = True
    offset: int = 0
    limit: int = 100

    def __post_init__(self) -> None:
        if self.sort not in SORTS:
            raise QuestionRefused(f"sort: must be one of {', '.join(SORTS)}")
        if not 0 <= self.limit <= MAX_JOBS_PER_PAGE:
            raise QuestionRefused(f"limit: must be between 0 and {MAX_JOBS_PER_PAGE}")
        if self.offset < 0:
            raise QuestionRefused("offset: must not be negative")


class UsageQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """Who used what between two moments. Days begin at midnight of `zone`."""

    since: datetime
    until: datetime
    by: tuple[str, ...] = ("queue",)
    visible: Namespaces = None
    namespace: str = ""
    queue: str = ""
    user: str = ""
    zone: str = "UTC"

    def __post_init__(self) -> None:
        if self.until <= self.since:
            raise QuestionRefused("until: must be after since")
        unknown = [name for name in self.by if name not in USAGE_GROUPS]
        if unknown or not self.by:
            raise QuestionRefused(f"by: must be some of {', '.join(USAGE_GROUPS)}")
        if "day" in self.by and (self.until - self.since).days > MAX_DAYS:
            raise QuestionRefused(f"since: a report by day covers at most {MAX_DAYS} days")


class SampleQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """Samples of queues or nodes between two moments, with the last sample before; all names when `name` is empty."""

    since: datetime
    until: datetime
    name: str = ""


class EvictionQuestion(msgspec.Struct, frozen=True, kw_only=True):
    visible: Namespaces = None
    since: datetime
    until: datetime
    namespace: str = ""
    limit: int = 1000

    def __post_init__(self) -> None:
        if not 0 < self.limit <= MAX_JOBS_PER_PAGE:
            raise QuestionRefused(f"limit: must be between 1 and {MAX_JOBS_PER_PAGE}")
