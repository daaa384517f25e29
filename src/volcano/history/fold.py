"""What one change adds to the history, and what is remembered of the object for the next one. Pure.

job_fold and pod_fold make them. Moments are taken from the objects where they state them, so that a change that is read
late is recorded as of when it happened; `now` stands in where an object states none.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import msgspec

from volcano.api.history_records import EvictionRecord, JobRecord, PastPod, StateRecord
from volcano.api.meta import Key, OwnerReference
from volcano.api.pods.amounts import Amounts, to_wire
from volcano.api.pods.gpus import milli_gpus
from volcano.api.quantity import Quantity

MAX_REASON_CHARACTERS: Final = 256
MAX_MESSAGE_CHARACTERS: Final = 1024
VOLCANO_BATCH: Final = "batch.volcano.sh/"
BATCH: Final = "batch/"
_NOTHING: Final = Quantity(0)


class ObservedJob(msgspec.Struct):
    """What is remembered of a job whose object is there."""

    kind: str
    key: Key
    phase: str = ""
    reason: str = ""
    started: datetime | None = None
    ended: datetime | None = None
    last_state: datetime | None = None
    digest: int = 0


class ObservedPod(msgspec.Struct):
    """What is remembered of a pod whose object is there; `requests` are held on `node` until it has ended."""

    is_recorded: bool
    key: Key
    node: str = ""
    requests: Amounts = {}
    bound: datetime | None = None
    ended: datetime | None = None
    evicted: bool = False
    digest: int = 0


class Folded(msgspec.Struct):
    """What one change adds to the history; empty when it changes nothing that is recorded."""

    job: JobRecord | None = None
    states: list[StateRecord] = []
    pod: PastPod | None = None
    eviction: EvictionRecord | None = None
    group: Key | None = None  # a PodGroup whose pods may have been recorded before it


def is_job(owner: OwnerReference | None) -> bool:
    """Whether the owner is a Job, Volcano's or Kubernetes', which is recorded under its own UID."""
    return owner is not None and owner.kind == "Job" and owner.api_version.startswith((VOLCANO_BATCH, BATCH))


def amount_fields(amounts: Amounts) -> dict[str, Any]:
    return {
        "requests": to_wire(amounts),
        "cpu_milli": amounts.get("cpu", _NOTHING).milli,
        "memory_bytes": amounts.get("memory", _NOTHING).value,
        "gpu_milli": milli_gpus(amounts),
    }
