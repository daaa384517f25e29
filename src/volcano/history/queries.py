"""Answers about jobs, pods, evictions and samples, from the database. They block; `History` awaits them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, TypeVar

import msgspec

from volcano.api.history_records import (
    EvictionRecord,
    GapRecord,
    JobCount,
    JobPage,
    JobRecord,
    JobStory,
    NodeSample,
    PastMoment,
    PastPod,
    QueueSample,
    StateRecord,
)
from volcano.history.columns import columns_of, milliseconds, moment_of, quoted, record_of
from volcano.history.conditions import PHASE_THEN, Conditions, job_conditions, label_value
from volcano.history.database import Database
from volcano.history.questions import (
    GROUPS,
    MAX_PODS,
    MAX_SAMPLES,
    EvictionQuestion,
    JobQuestion,
    Namespaces,
    QuestionRefused,
    SampleQuestion,
)

S = TypeVar("S", QueueSample, NodeSample)

_FAR: Final = 9_000_000_000_000_000
"""A moment after all others: what still waits or runs comes before what ended, the oldest first."""
_ORDERS: Final = {
    "waited": f'COALESCE(j."started", j."ended", {_FAR}) - j."created"',
    "ran": f'CASE WHEN j."started" IS NULL THEN 0 ELSE COALESCE(j."ended", {_FAR}) - j."started" END',
    "cpu": 'j."cpu_milli"',
    "memory": 'j."memory_bytes"',
    "gpu": 'j."gpu_milli"',
}
_USED: Final = ', u."milliseconds", u."cpu_milli_seconds", u."memory_mib_seconds"'
_MIB: Final = 2**20


def jobs(database: Database, question: JobQuestion) -> JobPage:
    where = job_conditions(question, database.dialect)
    total = int(database.query(f"SELECT COUNT(*) FROM jobs j WHERE {where.text}", where.values)[0][0])
    order = _ORDERS.get(question.sort) or f'j."{question.sort}"'
    way = "DESC" if question.descending else "ASC"
    then = f", {PHASE_THEN}" if question.at is not None else ""
    rows = database.query(
        f"SELECT {quoted(columns_of(JobRecord), 'j')}{then} FROM jobs j WHERE {where.text} "
        f'ORDER BY {order} {way} NULLS LAST, j."uid" LIMIT :limit OFFSET :offset',  # in a form for which indexes serve
        {**where.values, "limit": question.limit, "offset": question.offset},
    )
    found = [record_of(JobRecord, row[: len(columns_of(JobRecord))]) for row in rows]
    if question.at is not None:
        found = [as_of(job, row[-1], question.at) for job, row in zip(found, rows, strict=True)]
    return JobPage(jobs=found, total=total, offset=question.offset)


def as_of(job: JobRecord, phase: str | None, at: datetime) -> JobRecord:
    """The job as it was then: what happened later has not happened."""
    ended = job.ended if job.ended is not None and job.ended <= at else None
    started = job.started if job.started is not None and job.started <= at else None
    later = {} if ended is not None else {"reason": "", "message": ""}
    return msgspec.structs.replace(job, phase=phase or "", started=started, ended=ended, gone=None, **later)


def job_counts(database: Database, question: JobQuestion, by: str) -> list[JobCount]:
    """How many jobs of each group are in each phase."""
    where = job_conditions(question, database.dialect)
    if by.startswith("label:") and len(by) > len("label:"):
        group = label_value("group_key", database.dialect)
        where.values["group_key"] = by.partition(":")[2]
    elif by in GROUPS:
        group = PHASE_THEN if by == "phase" and question.at else f'j."{by}"'
    else:
        raise QuestionRefused(f"by: must be one of {', '.join(GROUPS)} or label:KEY")
    phase = PHASE_THEN if question.at is not None else 'j."phase"'
    rows = database.query(
        f"SELECT g, f, COUNT(*) FROM (SELECT {group} AS g, {phase} AS f FROM jobs j WHERE {where.text}) c "
        "GROUP BY g, f",
        where.values,
    )
    found = [JobCount(group=row[0] or "", phase=row[1] or "", count=int(row[2])) for row in rows]
    return sorted(found, key=lambda each: (each.group, each.phase))


def story(database: Database, uid: str, visible: Namespaces = None) -> JobStory | None:
    """One job with its states, pods and evictions; None when there is no such job, or none that the asker may see."""
    found = jobs(database, JobQuestion(uid=uid, visible=visible, limit=1)).jobs
    if not found:
        return None
    job = found[0]
    values: dict[str, Any] = {"uid": uid, "most": MAX_PODS}
    states = database.query(
        f'SELECT {quoted(columns_of(StateRecord))} FROM states WHERE "job_uid" = :uid ORDER BY "at" LIMIT :most', values
    )
    evictions = database.query(
        f'SELECT {quoted(columns_of(EvictionRecord))} FROM evictions WHERE "job_uid" = :uid ORDER BY "at" LIMIT :most',
        values,
    )
    return JobStory(
        job=job,
        states=[record_of(StateRecord, row) for row in states],
        pods=pods(database, job_uid=uid),
        evictions=[record_of(EvictionRecord, row) for row in evictions],
        gaps=[gap for gap in gaps(database, since=job.created) if job.ended is None or gap.begin < job.ended],
    )


def pods(
    database: Database, *, job_uid: str = "", node: str = "", at: datetime | None = None, visible: Namespaces = None
) -> list[PastPod]:
    """Pods of a job, of a node, or all that held a node at a moment."""
    where = Conditions()
    where.see('p."namespace"', visible)
    where.equal('p."job_uid"', "job", job_uid)
    where.equal('p."node"', "node", node)
    if at is not None:
        where.add('p."bound" <= :at AND (p."ended" IS NULL OR p."ended" > :at)', at=milliseconds(at))
    rows = database.query(
        f"SELECT {quoted(columns_of(PastPod), 'p')}{_USED} FROM pods p "
        f'LEFT JOIN measured u ON u."pod_uid" = p."uid" WHERE {where.text} '
        'ORDER BY p."role", p."index", p."created", p."uid" LIMIT :most',
        {**where.values, "most": MAX_PODS},
    )
    return [_pod(row) for row in rows]


def _pod(row: Any) -> PastPod:
    *stored, measured, cpu, memory = row
    if not measured:
        return record_of(PastPod, stored)
    return record_of(
        PastPod,
        stored,
        used_cpu_milli=round(cpu * 1000 / measured),
        used_memory_bytes=round(memory * _MIB * 1000 / measured),
        measured_seconds=measured / 1000,
    )


def evictions(database: Database, question: EvictionQuestion) -> list[EvictionRecord]:
    where = Conditions()
    where.see('"namespace"', question.visible)
    where.equal('"namespace"', "namespace", question.namespace)
    where.add('"at" >= :since', since=milliseconds(question.since))
    where.add('"at" < :until', until=milliseconds(question.until))
    rows = database.query(
        f"SELECT {quoted(columns_of(EvictionRecord))} FROM evictions WHERE {where.text} "
        'ORDER BY "at" DESC, "pod_uid" LIMIT :limit',
        {**where.values, "limit": question.limit},
    )
    return [record_of(EvictionRecord, row) for row in rows]


# -- samples ----------------------------------------------------------------------------------------------------------
def queue_samples(database: Database, question: SampleQuestion) -> list[QueueSample]:
    return _samples(database, QueueSample, "queue_samples", "queue", question)


def node_samples(database: Database, question: SampleQuestion) -> list[NodeSample]:
    return _samples(database, NodeSample, "node_samples", "node", question)


def _samples(database: Database, kind: type[S], table: str, name: str, question: SampleQuestion) -> list[S]:
    """Those between the moments, and of each name the last one before."""
    where = Conditions()
    where.equal(f't."{name}"', "name", question.name)
    where.add('t."at" < :until', until=milliseconds(question.until))
    where.add(
        f't."at" >= COALESCE((SELECT MAX(b."at") FROM {table} b WHERE b."{name}" = t."{name}" AND b."at" <= :since), '
        ":since)",
        since=milliseconds(question.since),
    )
    rows = database.query(
        f"SELECT {quoted(columns_of(kind), 't')} FROM {table} t WHERE {where.text} "
        f'ORDER BY t."at", t."{name}" LIMIT :most',
        {**where.values, "most": MAX_SAMPLES},
    )
    return [record_of(kind, row) for row in rows]


def gaps(database: Database, *, since: datetime) -> list[GapRecord]:
    rows = database.query(
        f'SELECT {quoted(columns_of(GapRecord))} FROM gaps WHERE "end" >= :since ORDER BY "begin", "kind" LIMIT :most',
        {"since": milliseconds(since), "most": MAX_SAMPLES},
    )
    return [record_of(GapRecord, row) for row in rows]


def moment(
    database: Database, at: datetime, visible: Namespaces = None, *, with_nodes: bool = True, with_queues: bool = True
) -> PastMoment:
    """Everything at a moment; single jobs are asked for with `JobQuestion(at=…)`, pods with `pods(at=…)`."""
    one_millisecond_later = moment_of(milliseconds(at) + 1)
    asked = SampleQuestion(since=at, until=one_millisecond_later)
    queues = queue_samples(database, asked) if with_queues else []
    nodes = node_samples(database, asked) if with_nodes else []
    return PastMoment(
        at=at,
        jobs=job_counts(database, JobQuestion(visible=visible, at=at), "queue"),
        queues=[sample for sample in queues if not sample.gone],
        nodes=[sample for sample in nodes if not sample.gone],
        gaps=[gap for gap in gaps(database, since=at) if gap.begin <= at],
    )


def namespaces(database: Database) -> list[str]:
    """All in which a job was recorded."""
    return [str(row[0]) for row in database.query('SELECT DISTINCT "namespace" FROM jobs')]
