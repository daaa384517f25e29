"""Questions to the history, asked over the API server with the caller's own client, so that it checks their rights."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, TypeVar

import msgspec

from volcano.api.errors import NotFound
from volcano.api.history_records import (
    HISTORY_PATH,
    HISTORY_SERVICE,
    JobCount,
    JobPage,
    JobRecord,
    JobStory,
    PastMoment,
    PastPod,
    QueueSample,
    UsageRow,
)
from volcano.api.times import micro_timestamp
from volcano.machinery.client import Client
from volcano.machinery.transport import Request

A = TypeVar("A")
NO_HISTORY: Final = "there is no history here: it is kept by `volcano up` and by `volcano history`"


async def _ask(client: Client, page: str, form: type[A], **parameters: Any) -> A:
    query = tuple((name, _text(value)) for name, value in parameters.items() if value not in ("", None, ()))
    try:
        answer = await client.raw(Request("GET", f"{HISTORY_PATH}/{page}", query))
    except NotFound as error:
        if error.details.get("group") == HISTORY_SERVICE:
            raise
        raise NotFound(NO_HISTORY) from error
    return msgspec.json.decode(answer.body, type=form)


def _text(value: Any) -> str:
    if isinstance(value, datetime):
        return micro_timestamp(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(value) if isinstance(value, tuple) else str(value)


async def past_jobs(client: Client, **question: Any) -> JobPage:
    return await _ask(client, "jobs", JobPage, **question)


async def past_counts(client: Client, by: str, **question: Any) -> list[JobCount]:
    return await _ask(client, "job-counts", list[JobCount], by=by, **question)


async def past_job(client: Client, namespace: str, name: str, at: datetime | None = None) -> JobStory | None:
    """The newest run of that name, or the one that existed then."""
    found = await past_jobs(client, namespace=namespace, name=name, at=at, limit=1)
    record: JobRecord | None = next(iter(found.jobs), None)
    return await _ask(client, f"jobs/{record.uid}", JobStory) if record is not None else None


async def past_moment(client: Client, at: datetime) -> PastMoment:
    return await _ask(client, "moment", PastMoment, at=at)


async def past_pods_on(client: Client, node: str, at: datetime) -> list[PastPod]:
    return await _ask(client, "pods", list[PastPod], node=node, at=at)


async def past_queue(client: Client, name: str, since: datetime, until: datetime) -> list[QueueSample]:
    return await _ask(client, "queues", list[QueueSample], name=name, since=since, until=until)


async def past_usage(client: Client, **question: Any) -> list[UsageRow]:
    return await _ask(client, "usage", list[UsageRow], **question)
