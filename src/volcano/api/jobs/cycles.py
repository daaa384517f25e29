"""PastCycle: what one scheduling cycle did, as GET /cycles of the scheduler answers it."""

from __future__ import annotations

from datetime import datetime

import msgspec


class CycleBind(msgspec.Struct, frozen=True):
    pod: str
    node: str


class CycleEviction(msgspec.Struct, frozen=True):
    pod: str
    node: str
    reason: str
    preemptor: str = ""


class PastCycle(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """`seconds` is by action; `waiting` has the reason for each job that waits. `left_out` counts what was cut."""

    number: int
    at: datetime
    seconds: dict[str, float] = {}
    nodes: int = 0
    jobs: int = 0
    tasks: int = 0
    bound: int = 0
    evicted: int = 0
    refused: int = 0
    binds: list[CycleBind] = []
    evictions: list[CycleEviction] = []
    waiting: dict[str, str] = {}
    left_out: int = 0
