"""HistoryRecorder: follows jobs and pods, folds changes into rows, writes them in batches with the position reached.

Rows and positions are one transaction, so that a killed recorder goes on exactly where the database is. A list after
a position means that changes may have been missed: that time is recorded as a gap. The first positions, without a
revision, are written before anything is read: a recorder that is killed before its first list leaves a gap too.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

import msgspec

from volcano.api.batch import Job
from volcano.api.core import BatchJob, Namespace, Node, Pod
from volcano.api.errors import ApiError
from volcano.api.history_records import DELETED, ENDED_PHASES, GapRecord, NodeSample, QueueSample, StateRecord
from volcano.api.meta import Key, Resource
from volcano.api.scheduling import GROUP_NAME_ANNOTATION, PodGroup, Queue
from volcano.api.scheme import resource_type
from volcano.history.batch import Position, RowBatch
from volcano.history.commit import commit
from volcano.history.daily_sums import sum_days
from volcano.history.database import Database
from volcano.history.fold import Folded, ObservedJob
from volcano.history.job_fold import fold_batch_job, fold_group, fold_job
from volcano.history.known import KnownObjects, load_known
from volcano.history.measuring import PodMeter, UseByNamespace
from volcano.history.pod_fold import fold_pod
from volcano.history.problems import DatabaseUnavailable
from volcano.history.retention import RetentionSettings, remove_expired
from volcano.history.sampling import news, node_samples, queue_sample
from volcano.history.watching import KindWatch, Listed, Seen
from volcano.machinery.client import PAGE_OBJECTS, Client
from volcano.machinery.clock import Clock

log = logging.getLogger(__name__)

FLUSH_INTERVAL: Final = timedelta(milliseconds=500)
"""At most one transaction in this time, whatever the load."""
MAX_WAITING_CHANGES: Final = 4096
"""Changes that were read and not yet folded; a watch is read no further until there is room."""
MAX_ROWS_PER_BATCH: Final = 4096
SAMPLE_INTERVAL: Final = timedelta(minutes=1)
SAMPLE_INTERVAL_PER_NODE: Final = timedelta(milliseconds=600)
"""With more than 100 nodes samples are taken less often, so that their number in a time stays the same."""
UPKEEP_INTERVAL: Final = timedelta(minutes=10)
HEARTBEAT_INTERVAL: Final = timedelta(seconds=30)
"""How precisely the beginning of a gap is known."""
MAX_RETRY_PAUSE: Final = timedelta(seconds=15)
SAMPLES: Final = "samples"
FOLLOWED: Final[tuple[type[Resource], ...]] = (Job, BatchJob, PodGroup, Pod)
_CLUSTER: Final = Key("", "kube-system")
_JobFold = Callable[..., tuple[Folded, ObservedJob] | None]
_JOB_FOLDS: Final[Mapping[type[Resource], _JobFold]] = {Job: fold_job, BatchJob: fold_batch_job, PodGroup: fold_group}


class WatchedChange(msgspec.Struct):
    """What a watch passed on, and of which kind."""

    reader: type[Resource]
    what: Seen[Any] | Listed[Any]


class HistoryRecorder:
    """Runs until cancelled. `caught_up` returns once everything that existed at the start is in the database."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        database: Database,
        *,
        retention: RetentionSettings | None = None,
        measures: bool = True,
    ) -> None:
        self._client, self._clock, self._database = client, clock, database
        self._retention = retention or RetentionSettings()
        self._known = KnownObjects()
        self._batch = RowBatch()
        self._cluster = ""
        self._changes: asyncio.Queue[WatchedChange] = asyncio.Queue(MAX_WAITING_CHANGES)
        self._queue_samples: dict[str, QueueSample] = {}
        self._node_samples: dict[str, NodeSample] = {}
        self._meter = PodMeter(client, clock) if measures else None
        self._unlisted = {kind_of(reader) for reader in FOLLOWED}
        self._watches: dict[str, KindWatch[Any]] = {}
        self._new: set[str] = set()  # kinds that are recorded for the first time
        self._caught_up = asyncio.Event()
        self._to_write = asyncio.Event()
        self.use = UseByNamespace()
        self.written_rows = 0
        self.size_bytes = 0
        """As of the last heartbeat: asking the database may take longer than a scrape may wait."""

    async def caught_up(self) -> None:
        await self._caught_up.wait()

    @property
    def waiting_changes(self) -> int:
        return self._changes.qsize() + self._batch.rows

    async def run(self) -> None:
        await self._until_available(self._database.prepare)
        self._known = await self._until_available(lambda: load_known(self._database))
        await self._begin()
        await self._find_cluster()
        self._mark_sample_gap()
        async with asyncio.TaskGroup() as group:
            for reader in FOLLOWED:
                group.create_task(self._watch(reader).run())
            group.create_task(self._fold())
            group.create_task(self._write())
            group.create_task(self._sample())
            group.create_task(self._keep_up())

    async def _begin(self) -> None:
        self._new = {kind for kind in self._unlisted if kind not in self._known.positions}
        for kind in sorted(self._new):
            self._reached(kind, "", self._clock.now())
        await self.flush()

    # -- reading --------------------------------------------------------------------------------------------------
    def _watch(self, reader: type[Resource]) -> KindWatch[Any]:
        async def take(what: Seen[Any] | Listed[Any]) -> None:
            await self._changes.put(WatchedChange(reader, what))

        position = self._known.positions.get(kind_of(reader))
        revision = position.revision if position is not None and position.cluster == self._cluster else ""
        if revision:
            self._has_listed(kind_of(reader))
        watch = KindWatch(self._client, self._clock, reader, take, revision=revision)
        self._watches[kind_of(reader)] = watch
        return watch

    async def _find_cluster(self) -> None:
        """The UID of kube-system tells clusters apart: a position is of use only in its own."""
        pause = FLUSH_INTERVAL
        while True:
            try:
                self._cluster = (await self._client.get(Namespace, _CLUSTER)).uid
                return
            except (ApiError, OSError, TimeoutError, msgspec.DecodeError, RecursionError) as error:
                log.warning("history: the cluster cannot be read yet: %s", error)
                await self._clock.sleep(pause)
                pause = min(pause * 2, MAX_RETRY_PAUSE)

    async def _fold(self) -> None:
        while True:
            change = await self._changes.get()
            self._take(change.reader, change.what)
            self._to_write.set()
            if self._batch.rows >= MAX_ROWS_PER_BATCH:
                await self._room_in_batch()
            await self._clock.give_way()

    async def _room_in_batch(self) -> None:
        while self._batch.rows >= MAX_ROWS_PER_BATCH:
            await self._clock.sleep(FLUSH_INTERVAL / 10)

    def _take(self, reader: type[Resource], what: Seen[Any] | Listed[Any]) -> None:
        kind, now = kind_of(reader), self._clock.now()
        if isinstance(what, Seen):
            if what.object is not None:
                self._object(reader, what.object, now, gone=what.is_deleted)
            self._reached(kind, what.revision, now)
            return
        for item in what.items:
            self._object(reader, item, now, listed=True)
        if what.present is not None:
            self._mark_gap(kind, now)
            self._end_vanished(reader, what.present, now)
            self._reached(kind, what.revision, now)
            self._has_listed(kind)

    def _object(
        self, reader: type[Resource], item: Any, now: datetime, *, gone: bool = False, listed: bool = False
    ) -> None:
        moment = now
        if gone and item.metadata.deletion_timestamp is not None:
            moment = min(now, item.metadata.deletion_timestamp)
        if reader is Pod:
            self._pod(item, moment, gone=gone)
            return
        more = {"after_gap": True} if listed and reader is Job else {}
        folded = _JOB_FOLDS[reader](item, self._known.jobs.get(item.uid), moment, gone=gone, **more)
        if folded is None:
            return
        self._batch.add(folded[0])
        if gone:
            self._known.forget_job(item.uid)
        else:
            self._known.remember_job(item.uid, folded[1])

    def _pod(self, pod: Pod, now: datetime, *, gone: bool) -> None:
        group = Key(pod.namespace, pod.annotations.get(GROUP_NAME_ANNOTATION, ""))
        folded, remembered = fold_pod(
            pod, self._known.pods.get(pod.uid), now, group_uid=self._known.groups.get(group, ""), gone=gone
        )
        self._batch.add(folded)
        if gone:
            self._known.pods.pop(pod.uid, None)
        else:
            self._known.pods[pod.uid] = remembered

    # -- positions and gaps ---------------------------------------------------------------------------------------
    def _reached(self, kind: str, revision: str, now: datetime) -> None:
        position = Position(kind, self._cluster, revision, now)
        self._known.positions[kind] = self._batch.positions[kind] = position

    def _mark_gap(self, kind: str, now: datetime) -> None:
        before, is_new = self._known.positions[kind], kind in self._new
        self._new.discard(kind)
        if is_new and now - before.at <= FLUSH_INTERVAL:
            return  # a history begins with its first list
        if not before.revision:
            why = "the recording had begun, and nothing was read yet"
        elif before.cluster == self._cluster:
            why = "the changes of this time were no longer to be had"
        else:
            why = "the records before are of another cluster"
        self._batch.gaps.append(GapRecord(kind=kind, begin=before.at, end=now, why=why))

    def _mark_sample_gap(self) -> None:
        before, now = self._known.positions.get(SAMPLES), self._clock.now()
        if before is not None and now - before.at > 2 * SAMPLE_INTERVAL:
            why = "no samples were taken"
            self._batch.gaps.append(GapRecord(kind=SAMPLES, begin=before.at, end=now, why=why))

    def _end_vanished(self, reader: type[Resource], present: frozenset[str], now: datetime) -> None:
        if reader is Pod:
            for uid in [uid for uid in self._known.pods if uid not in present]:
                if self._known.pods.pop(uid).is_recorded:
                    self._batch.vanished.append(("pods", uid, now))
                    self._batch.pods.pop(uid, None)
            return
        kinds = {Job: "Job", BatchJob: "batch/Job"}
        mine = kinds.get(reader)
        for uid, job in list(self._known.jobs.items()):
            is_mine = job.kind == mine if mine is not None else job.kind not in kinds.values()
            if not is_mine or uid in present:
                continue
            self._known.forget_job(uid)
            self._batch.vanished.append(("jobs", uid, now))
            if job.phase not in ENDED_PHASES and job.ended is None:
                self._batch.states.append(StateRecord(job_uid=uid, at=now, phase=DELETED))

    def _has_listed(self, kind: str) -> None:
        self._unlisted.discard(kind)

    # -- writing --------------------------------------------------------------------------------------------------
    async def _write(self) -> None:
        while True:
            await self._to_write.wait()
            await self._clock.sleep(FLUSH_INTERVAL)
            await self.flush()

    async def flush(self) -> None:
        """Write what has been folded so far; tried again for as long as the database does not answer."""
        self._to_write.clear()
        batch, self._batch = self._batch, RowBatch()
        complete = not self._unlisted
        if batch.rows:
            await self._until_available(lambda: commit(self._database, batch))
            self.written_rows += batch.rows
        if complete:
            self._caught_up.set()

    async def _until_available(self, work: Callable[[], Any]) -> Any:
        pause = FLUSH_INTERVAL
        while True:
            try:
                return await self._clock.run(work)
            except DatabaseUnavailable as error:
                log.warning("history: %s; trying again", error)
                await self._clock.sleep(pause)
                pause = min(pause * 2, MAX_RETRY_PAUSE)

    # -- samples and upkeep ---------------------------------------------------------------------------------------
    async def _sample(self) -> None:
        await self._know_other_pods()
        while True:
            interval = SAMPLE_INTERVAL
            try:
                interval = max(interval, await self._take_samples() * SAMPLE_INTERVAL_PER_NODE)
            except (ApiError, OSError, TimeoutError, msgspec.DecodeError, RecursionError) as error:
                log.warning("history: queues and nodes cannot be sampled: %s", error)
            await self._clock.sleep(interval)

    async def _know_other_pods(self) -> None:
        """Pods that are not recorded take room on nodes too; after a resumed watch they are not known yet."""
        next_page = ""
        while True:
            try:
                page = await self._client.list(Pod, limit=PAGE_OBJECTS, next_page=next_page)
            except (ApiError, OSError, TimeoutError, msgspec.DecodeError, RecursionError) as error:
                log.warning("history: pods cannot be listed: %s", error)
                return
            for pod in page.items:
                if pod.uid not in self._known.pods:
                    folded, remembered = fold_pod(pod, None, self._clock.now())
                    if folded.pod is None:
                        self._known.pods[pod.uid] = remembered
            next_page = page.next
            if not next_page:
                return

    async def _take_samples(self) -> int:
        """How many nodes there are."""
        queues = (await self._client.list(Queue)).items
        nodes = (await self._client.list(Node)).items
        now = self._clock.now()
        queue_news = news((queue_sample(q, now) for q in queues), self._queue_samples, name="queue", at=now)
        node_news = news(node_samples(nodes, self._known.pods.values(), now), self._node_samples, name="node", at=now)
        self._queue_samples |= {sample.queue: sample for sample in queue_news}
        self._node_samples |= {sample.node: sample for sample in node_news}
        self._batch.queues += queue_news
        self._batch.nodes += node_news
        if self._meter is not None:
            known = self._known.pods.items()
            recorded = {pod.key: uid for uid, pod in known if pod.is_recorded and pod.ended is None}
            measured = await self._meter.measure(recorded)
            self._batch.measured += measured  # of the batch of now: another may have begun meanwhile
            for each in measured:
                if each.pod_uid in self._known.pods:
                    self.use.add(each, self._known.pods[each.pod_uid])
        self._reached(SAMPLES, "", self._clock.now())
        self._to_write.set()
        return len(nodes)

    async def _keep_up(self) -> None:
        next_upkeep = self._clock.now()
        while True:
            now = self._clock.now()
            for kind, position in list(self._known.positions.items()):
                watch = self._watches.get(kind)
                if watch is not None and watch.is_watching and position.cluster == self._cluster:
                    self._reached(kind, position.revision, now)
            self._to_write.set()
            if now >= next_upkeep:
                next_upkeep = now + UPKEEP_INTERVAL
                await self._until_available(partial(remove_expired, self._database, now, self._retention))
                await self._until_available(partial(sum_days, self._database, now))
            self.size_bytes = await self._until_available(self._database.size_bytes)
            await self._clock.sleep(HEARTBEAT_INTERVAL)


def kind_of(reader: type[Resource]) -> str:
    return resource_type(reader).qualified
