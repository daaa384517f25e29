"""The history as JSON lines, which `volcano simulate` reads as a workload: one job a line, with run time and roles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from volcano.api.history_records import JobRecord
from volcano.api.meta import JSON
from volcano.api.times import micro_timestamp


def history_lines(jobs: Iterable[JobRecord]) -> Iterator[bytes]:
    """Jobs that started and ended. Names are unique there: one that occurred before gets the beginning of the UID."""
    names: set[str] = set()
    for job in jobs:
        if job.started is None or job.ended is None or not job.roles:
            continue
        name = job.name if job.name not in names else f"{job.name}-{job.uid[:8]}"
        names.add(name)
        yield msgspec.json.encode(_line(job, name)) + b"\n"


def _line(job: JobRecord, name: str) -> JSON:
    assert job.started is not None and job.ended is not None, "the caller has checked"
    started = max(job.started, job.created)
    line: JSON = {
        "name": name,
        "namespace": job.namespace,
        "submit": micro_timestamp(job.created),
        "start": micro_timestamp(started),
        "end": micro_timestamp(max(job.ended, started)),
        "queue": job.queue or "default",
        "user": job.user,
        "priorityClassName": job.priority_class,
        "minAvailable": job.min_available,
        "roles": [
            {
                "name": role.name or "task",
                "count": max(role.count, 1),
                "requests": role.requests,
                "nodeSelector": role.node_selector,
            }
            for role in job.roles
        ],
    }
    if job.estimate_seconds is not None:
        line["estimate"] = job.estimate_seconds
    return line
