"""Writes a batch: all of it or nothing."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from volcano.api.history_records import (
    DELETED,
    ENDED_PHASES,
    EvictionRecord,
    GapRecord,
    JobRecord,
    NodeSample,
    PastPod,
    QueueSample,
    StateRecord,
)
from volcano.api.meta import Key
from volcano.history.batch import Measured, Position, RowBatch
from volcano.history.changed_days import drop_changed
from volcano.history.columns import columns_of, milliseconds, quoted, values_of
from volcano.history.database import Database


def commit(database: Database, batch: RowBatch) -> None:
    """Durable when it returns."""
    with database.transaction():
        drop_changed(database, batch)
        _upsert(database, "jobs", JobRecord, list(batch.jobs.values()), kept_when_empty=("user",))
        _upsert(database, "pods", PastPod, list(batch.pods.values()), kept_when_empty=("job_uid",))
        _insert(database, "states", StateRecord, batch.states)
        _insert(database, "evictions", EvictionRecord, list(batch.evictions.values()))
        for group, uid in batch.groups:
            _adopt(database, group, uid)
        for table, uid, at in batch.vanished:
            _end_unseen(database, table, uid, at)
        _insert(database, "gaps", GapRecord, batch.gaps)
        _upsert(database, "queue_samples", QueueSample, batch.queues, key=("queue", "at"))
        _upsert(database, "node_samples", NodeSample, batch.nodes, key=("node", "at"))
        _add_measured(database, batch.measured)
        _upsert(database, "positions", Position, list(batch.positions.values()), key=("kind",))


def _insert(database: Database, table: str, kind: type[msgspec.Struct], records: Sequence[msgspec.Struct]) -> None:
    columns = columns_of(kind)
    values = ", ".join(f":{name}" for name in columns)
    statement = f"INSERT INTO {table} ({quoted(columns)}) VALUES ({values}) ON CONFLICT DO NOTHING"
    database.execute_many(statement, [values_of(record) for record in records])


def _upsert(
    database: Database,
    table: str,
    kind: type[msgspec.Struct],
    records: Sequence[msgspec.Struct],
    *,
    key: tuple[str, ...] = ("uid",),
    kept_when_empty: tuple[str, ...] = (),
) -> None:
    columns = columns_of(kind)
    values = ", ".join(f":{name}" for name in columns)
    changes = ", ".join(
        f'"{name}" = CASE WHEN excluded."{name}" = \'\' THEN {table}."{name}" ELSE excluded."{name}" END'
        if name in kept_when_empty
        else f'"{name}" = excluded."{name}"'
        for name in columns
        if name not in key
    )
    statement = (
        f"INSERT INTO {table} ({quoted(columns)}) VALUES ({values}) ON CONFLICT ({quoted(key)}) DO UPDATE SET {changes}"
    )
    database.execute_many(statement, [values_of(record) for record in records])


def _adopt(database: Database, group: Key, uid: str) -> None:
    """Give the pods that were recorded before their PodGroup to it."""
    values = {"uid": uid, "namespace": group.namespace, "name": group.name}
    database.execute(
        'UPDATE pods SET "job_uid" = :uid WHERE "namespace" = :namespace AND "group_name" = :name AND "job_uid" = \'\'',
        values,
    )
    database.execute(
        'UPDATE evictions SET "job_uid" = :uid WHERE "job_uid" = \'\' AND "pod_uid" IN '
        '(SELECT "uid" FROM pods WHERE "job_uid" = :uid)',
        {"uid": uid},
    )


def _end_unseen(database: Database, table: str, uid: str, at: datetime) -> None:
    """An object that is gone since the recorder last watched: its end is not known, only that it has ended."""
    values: dict[str, object] = {"uid": uid, "at": milliseconds(at)}
    if table == "pods":
        database.execute(
            'UPDATE pods SET "gone" = :at, "ended" = COALESCE("ended", :at), '
            '"phase" = CASE WHEN "ended" IS NULL THEN \'Deleted\' ELSE "phase" END WHERE "uid" = :uid',
            values,
        )
        return
    ended = ", ".join(f"'{phase}'" for phase in ENDED_PHASES)
    database.execute(
        'UPDATE jobs SET "gone" = :at, "ended" = COALESCE("ended", :at), '
        '"end_is_known" = CASE WHEN "ended" IS NULL THEN 0 ELSE "end_is_known" END, '
        f'"phase" = CASE WHEN "phase" IN ({ended}) THEN "phase" ELSE \'{DELETED}\' END WHERE "uid" = :uid',
        values,
    )


def _add_measured(database: Database, measured: list[Measured]) -> None:
    columns = columns_of(Measured)
    values = ", ".join(f":{name}" for name in columns)
    sums = ", ".join(f'"{name}" = measured."{name}" + excluded."{name}"' for name in columns if name != "pod_uid")
    statement = (
        f'INSERT INTO measured ({quoted(columns)}) VALUES ({values}) ON CONFLICT ("pod_uid") DO UPDATE SET {sums}'
    )
    database.execute_many(statement, [values_of(each) for each in measured])
