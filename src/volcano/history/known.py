"""Known: what the recorder remembers of the objects that are there, and how it is read from the database at a start."""

from __future__ import annotations

import msgspec

from volcano.api.history_records import BATCH_JOB, VOLCANO_JOB
from volcano.api.meta import Key
from volcano.api.pods.amounts import Amounts, amounts_of
from volcano.history.batch import Position
from volcano.history.columns import columns_of, moment_of, quoted, record_of
from volcano.history.database import Database
from volcano.history.fold import ObservedJob, ObservedPod


class KnownObjects(msgspec.Struct):
    """By UID; `groups` finds the PodGroup that a pod names."""

    jobs: dict[str, ObservedJob] = {}
    pods: dict[str, ObservedPod] = {}
    groups: dict[Key, str] = {}
    positions: dict[str, Position] = {}

    def remember_job(self, uid: str, job: ObservedJob) -> None:
        self.jobs[uid] = job
        if job.kind not in (VOLCANO_JOB, BATCH_JOB):
            self.groups[job.key] = uid

    def forget_job(self, uid: str) -> None:
        job = self.jobs.pop(uid, None)
        if job is not None and self.groups.get(job.key) == uid:
            del self.groups[job.key]


def load_known(database: Database) -> KnownObjects:
    known = KnownObjects()
    rows = database.query(
        'SELECT j."uid", j."kind", j."namespace", j."name", j."phase", j."reason", j."started", j."ended", '
        '(SELECT MAX(s."at") FROM states s WHERE s."job_uid" = j."uid") FROM jobs j WHERE j."gone" IS NULL'
    )
    for uid, kind, namespace, name, phase, reason, *times in rows:
        started, ended, last = (None if each is None else moment_of(each) for each in times)
        known.remember_job(uid, ObservedJob(kind, Key(namespace, name), phase, reason, started, ended, last))
    pods = database.query(
        'SELECT p."uid", p."namespace", p."name", p."node", p."requests", p."bound", p."ended", '
        '(SELECT COUNT(*) FROM evictions e WHERE e."pod_uid" = p."uid") FROM pods p WHERE p."gone" IS NULL'
    )
    shapes: dict[str, Amounts] = {}
    for uid, namespace, name, node, requests, bound, ended, evicted in pods:
        amounts = shapes.get(requests)
        if amounts is None:
            amounts = shapes[requests] = amounts_of(msgspec.json.decode(requests))
        held, done = (None if each is None else moment_of(each) for each in (bound, ended))
        known.pods[uid] = ObservedPod(True, Key(namespace, name), node, amounts, held, done, bool(evicted))
    for row in database.query(f"SELECT {quoted(columns_of(Position))} FROM positions"):
        position = record_of(Position, row)
        known.positions[position.kind] = position
    return known
