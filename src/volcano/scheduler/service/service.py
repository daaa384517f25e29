"""The scheduler as it runs: follow the world, decide when something could have changed, send what was decided.

Deciding happens off the event loop on the cache's snapshot; everything that is sent counts as done until it fails.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from volcano.api.errors import AlreadyExists, ApiError
from volcano.api.meta import JSON, Key
from volcano.api.scheduling import Queue
from volcano.api.scheme import resource_type
from volcano.api.simulation import Simulation
from volcano.api.topology import NodeShard
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock, Stopwatch
from volcano.machinery.pace import Pace
from volcano.machinery.world import Mirror
from volcano.scheduler.cache import FOLLOWED, Batch, Cache, CacheSettings
from volcano.scheduler.cache.cache import is_adopted
from volcano.scheduler.commit import Commitment, Committer, shard_status
from volcano.scheduler.framework.config import InvalidConfig, SchedulerConfig
from volcano.scheduler.framework.decisions import Decisions
from volcano.scheduler.loop import cycle
from volcano.scheduler.model import SeededChance
from volcano.scheduler.service.configuration import ConfigMapKey, Configuration, read_file
from volcano.scheduler.service.cycle_metrics import SchedulerMetrics
from volcano.scheduler.service.following import follow
from volcano.scheduler.service.job_expansion import ExpandJob
from volcano.scheduler.service.node_usage import NodeUsage
from volcano.scheduler.service.recordings import Recordings
from volcano.scheduler.service.registry import Registry, load_registry
from volcano.scheduler.service.sending import Sending
from volcano.scheduler.service.simulate import Known, simulate

log = logging.getLogger(__name__)

SHORTEST_PAUSE: Final = timedelta(milliseconds=2)
LONGEST_PAUSE: Final = timedelta(milliseconds=200)
PATIENCE: Final = timedelta(milliseconds=100)
EAGER_TURNS: Final = 10
TURNS_PER_SECOND: Final = 20
"""Something that happens now and then is looked at immediately; in a stream of changes each turn takes many of them."""
BACKLOG: Final = 64
QUEUE_TRIES: Final = 60
SECOND: Final = timedelta(seconds=1)


class SchedulerSettings(msgspec.Struct, frozen=True):
    """What the flags say, parsed."""

    scheduler_conf: str = ""
    scheduler_configmap: str = ""  # NAMESPACE/NAME:KEY
    scheduler_names: tuple[str, ...] = ("volcano",)
    adopt_plain_pods: bool = False
    schedule_period: timedelta = SECOND
    default_queue: str = "default"
    node_selector: tuple[tuple[str, str], ...] = ()
    ignored_provisioners: tuple[str, ...] = ()
    sharding_mode: str = "none"
    shard_name: str = "volcano"
    admits_by_gate: bool = False
    plugins_dir: str = ""
    needs_own_configuration: bool = False  # no built-in configuration to fall back to
    sync_timeout: timedelta = timedelta(seconds=60)
    record_dir: str = ""
    redact: bool = False


class SchedulerService:
    """Runs until cancelled. `ready` returns when the first cycle is about to begin."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        settings: SchedulerSettings | None = None,
        *,
        expand_job: ExpandJob,
        registry: Registry | None = None,
    ) -> None:
        self.settings = settings or SchedulerSettings()
        self.client, self.clock = client, clock
        self._expand_job = expand_job
        self.mirror = Mirror(clock.now)
        self.cache = Cache(_cache_settings(self.settings))
        self.configuration = Configuration(registry or load_registry(self.settings.plugins_dir), self._wake)
        self.metrics = SchedulerMetrics()
        self.recordings = Recordings(self.settings.record_dir, redact=self.settings.redact)
        self.committer = Committer(self.settings.scheduler_names[0])
        self.sending = Sending(
            client, clock, mirror=self.mirror, cache=self.cache, metrics=self.metrics, unsay=self._unsay
        )
        self.turns = 0
        self.last: Decisions | None = None
        self._news = asyncio.Event()
        self._ready = asyncio.Event()
        self._restless = True  # something waits for time to pass
        self._soon = False  # a turn is due before long
        self._last_turn = 0.0  # how long it took, in seconds
        self._eagerness = Pace(EAGER_TURNS, TURNS_PER_SECOND, clock.monotonic())

    async def ready(self) -> None:
        await self._ready.wait()

    @property
    def is_ready(self) -> bool:
        return self._ready.is_set()

    # -- life ----------------------------------------------------------------------------------------------------
    async def run(self) -> None:
        """Until cancelled. InvalidConfig when there must be a configuration of one's own and is none."""
        following = await self._first_configuration()
        await self._make_queues()
        async with asyncio.TaskGroup() as group:
            group.create_task(self.sending.recorder.run())
            if following is not None:
                group.create_task(following)
            group.create_task(NodeUsage(self.client, self.clock, self.configuration, self.cache.measure).run())
            await follow(group, self.client, self.clock, self.mirror, timeout=self.settings.sync_timeout)
            self.cache.follow(self.mirror, self._hear)
            self._ready.set()
            try:
                await self._work()
            finally:
                self.sending.stop()

    async def _first_configuration(self) -> Coroutine[Any, Any, None] | None:
        """Read it once; what then follows it is returned."""
        chosen = self.settings
        following: Coroutine[Any, Any, None] | None = None
        if chosen.scheduler_conf:
            self.configuration.offer(
                await self.clock.run(lambda: read_file(chosen.scheduler_conf)), chosen.scheduler_conf
            )
            following = self.configuration.follow_file(chosen.scheduler_conf, self.clock)
        elif chosen.scheduler_configmap:
            place = ConfigMapKey.parse(chosen.scheduler_configmap)
            await self.configuration.read_configmap(place, self.client)
            following = self.configuration.follow_configmap(place, self.client, self.clock)
        if chosen.needs_own_configuration and (self.configuration.problem or not chosen.scheduler_conf):
            if following is not None:
                following.close()
            raise InvalidConfig(self.configuration.problem or "a configuration is required, and none is given")
        return following

    async def _make_queues(self) -> None:
        """The queues everything hangs on, unless they are there."""
        for name, reclaimable in (("root", False), (self.settings.default_queue, True)):
            body = {"metadata": {"name": name}, "spec": {"weight": 1, "reclaimable": reclaimable}}
            for attempt in range(QUEUE_TRIES):
                try:
                    await self.client.create(resource_type(Queue), body)
                    break
                except AlreadyExists:
                    break
                except (ApiError, OSError, TimeoutError) as error:
                    if attempt == QUEUE_TRIES - 1:
                        raise
                    log.warning("queue %s cannot be made yet: %s", name, error)
                    await self.clock.sleep(SECOND)

    # -- turns ---------------------------------------------------------------------------------------------------
    def _wake(self) -> None:
        self._news.set()

    def _hear(self, urgent: bool) -> None:
        """What nobody waits for may gather for a while."""
        if urgent:
            self._news.set()
        elif not self._soon:
            self._soon = True
            asyncio.get_running_loop().call_later(PATIENCE.total_seconds(), self._wake)

    async def _work(self) -> None:
        while True:
            await self._turn_due()
            try:
                await self._turn()
            except Exception:
                # A bug must not end scheduling: begin again from what the world says, after a while.
                log.exception("a scheduling cycle failed")
                self._begin_anew()
                await self.clock.sleep(SECOND)

    async def _turn_due(self) -> None:
        period = self.settings.schedule_period.total_seconds()
        while True:
            try:
                async with asyncio.timeout(period):
                    await self._news.wait()
            except TimeoutError:
                if not (self._restless or self.cache.has_news):
                    continue
                return
            # A change rarely comes alone; and the busier, the longer others may work in between.
            rest = max(self._last_turn / 2, self._eagerness.wait(self.clock.monotonic()))
            if self.sending.backlog >= BACKLOG:  # deciding faster than the server takes it would gain nothing
                rest = LONGEST_PAUSE.total_seconds()
            await self.clock.sleep(min(max(timedelta(seconds=rest), SHORTEST_PAUSE), LONGEST_PAUSE))
            return

    async def _turn(self) -> None:
        self._news.clear()
        self._soon = False
        batch, now = self.cache.take(), self.clock.now()
        config, in_flight = self.configuration.current, frozenset(self.sending.in_flight)
        self.turns += 1
        begun = self.clock.monotonic()
        self._eagerness.take(begun)
        decisions, commitment = await self.clock.run(lambda: self._decide(batch, config, now, in_flight))
        self._last_turn = self.clock.monotonic() - begun
        self.last = decisions
        waiting = decisions.why or decisions.pods or decisions.pipelined or decisions.dropped or decisions.restless
        self._restless = bool(waiting) or bool(in_flight) or commitment.postponed
        self.metrics.tell(decisions, self.cache.snapshot, now)
        self.sending.send(commitment)
        self._write_shard(now)

    def _decide(
        self, batch: Batch, config: SchedulerConfig, now: datetime, in_flight: frozenset[str]
    ) -> tuple[Decisions, Commitment]:
        """Off the event loop: nobody else touches the snapshot meanwhile."""
        seed = self.turns
        snapshot = self.cache.refresh(batch, now, f"{now:%Y%m%dT%H%M%S}-{seed}")
        if self.recordings.is_due:
            self.recordings.write(snapshot, self.configuration.text, seed, self.cache.hypernodes)
        registry = self.configuration.registry
        decisions = cycle(
            snapshot,
            config,
            SeededChance(seed),
            _Watch(),
            plugins=registry.plugins,
            actions=registry.actions,
        )
        adopted = frozenset(job for job in decisions.groups if is_adopted(job))
        commitment = self.committer.commitment(decisions, snapshot, now, in_flight=in_flight, is_virtual=adopted)
        for binding in commitment.binds:
            self.cache.assume_bound(binding.uid, binding.node)
        for evicting in commitment.evictions:
            self.cache.assume_evicted(evicting.uid)
        return decisions, commitment

    def _begin_anew(self) -> None:
        self.cache.begin_anew(self.mirror)

    def _unsay(self, job: str, pod_uid: str) -> None:
        """Something was not done: say it again, and look again before long."""
        self.committer.unsay(job=job, pod_uid=pod_uid)
        self._restless = True

    def _write_shard(self, now: datetime) -> None:
        shard = self.cache.snapshot.surroundings.shard
        own = self.mirror.get(NodeShard, Key("", shard.name)) if shard.mode != "none" else None
        patch = shard_status(own, shard.nodes, now) if own is not None else None
        if patch is not None:
            self.sending.write_once("shard", patch)

    # -- what if -----------------------------------------------------------------------------------------------------
    async def simulate(self, request: JSON) -> Simulation:
        """What would happen to these pods or this Job now; nothing is sent. BadRequest when it cannot be told."""
        batch = self.cache.assumptions()
        known = Known(
            self.cache.settings,
            {kind: self.mirror.all(kind) for kind in FOLLOWED},
            self.configuration.current,
            self.configuration.registry,
            self.clock.now(),
            self._expand_job,
            batch.assumed,
            batch.evicting,
        )
        return await self.clock.run(lambda: simulate(known, request))

    # -- showing -------------------------------------------------------------------------------------------------
    def state(self) -> JSON:
        """What the scheduler is doing, for people."""
        snapshot = self.cache.snapshot
        return {
            "ready": self.is_ready,
            "turns": self.turns,
            "configurationProblem": self.configuration.problem,
            "configurationDoubts": self.configuration.doubts,
            "nodes": len(snapshot.table),
            "jobs": len(snapshot.jobs),
            "tasks": len(snapshot.tasks),
            "setAside": dict(snapshot.set_aside),
        }


class _Watch:
    """A session's stopwatch: real time, whatever the clock."""

    def __init__(self) -> None:
        self._watch = Stopwatch()

    def read(self) -> float:
        return self._watch.seconds()


def _cache_settings(settings: SchedulerSettings) -> CacheSettings:
    return CacheSettings(
        scheduler_names=frozenset(settings.scheduler_names),
        default_queue=settings.default_queue,
        adopt_plain_pods=settings.adopt_plain_pods,
        admits_by_gate=settings.admits_by_gate,
        node_selector=settings.node_selector,
        ignored_provisioners=frozenset(settings.ignored_provisioners),
        sharding_mode=settings.sharding_mode,
        shard_name=settings.shard_name,
    )
