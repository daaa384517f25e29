"""The running scheduler: follow the API server, decide when something has changed, write what was decided.

Everything here runs on the event loop. What a turn computes runs in a worker thread (service.decider, which states the
rule of what either may touch); when turns are due is decided by service.turn_timer; service.sender writes.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime, timedelta
from typing import Final

from volcano.api.decode import prepare_decoders
from volcano.api.jobs.expected_starts import ExpectedStarts
from volcano.api.jobs.priorities import JobPriorities
from volcano.api.jobs.simulation import Simulation
from volcano.api.meta import JSON, Key
from volcano.api.scheme import READERS
from volcano.api.topology import NodeShard
from volcano.api.why.answers import WhyAnswer
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock
from volcano.machinery.informer_set import InformerSet
from volcano.scheduler.cache import FOLLOWED, PendingChanges
from volcano.scheduler.commit import Unwritten, shard_status
from volcano.scheduler.framework.decisions import Decisions
from volcano.scheduler.service.configuration import Configuration, start_configuration
from volcano.scheduler.service.cycle_metrics import SchedulerMetrics
from volcano.scheduler.service.decider import Decider, Overview, TurnInput, TurnResult
from volcano.scheduler.service.expected_starts import PlaybackBudget, expected_starts
from volcano.scheduler.service.explaining import Explainer
from volcano.scheduler.service.following import follow
from volcano.scheduler.service.initial_queues import create_queues
from volcano.scheduler.service.job_expansion import ExpandJob
from volcano.scheduler.service.node_usage import NodeUsageReader
from volcano.scheduler.service.past_cycles import PastCycles
from volcano.scheduler.service.priorities import job_priorities
from volcano.scheduler.service.recordings import RecordingRequests
from volcano.scheduler.service.registry import Registry, load_registry
from volcano.scheduler.service.sender import Sender
from volcano.scheduler.service.settings import SchedulerSettings
from volcano.scheduler.service.simulate import Known, simulate
from volcano.scheduler.service.turn_timer import TurnTimer
from volcano.scheduler.service.waiting_reasons import WaitingReasons

log = logging.getLogger(__name__)
PAUSE_AFTER_FAILURE: Final = timedelta(seconds=1)
MAX_AGE_OF_STARTS: Final = timedelta(seconds=60)


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
        informers: InformerSet | None = None,
    ) -> None:
        """`informers` is given where other components of the process follow the same kinds."""
        prepare_decoders(READERS)  # cycles and simulations run in threads, beside the informers of this loop
        self.settings = settings = settings or SchedulerSettings()
        self.client, self.clock = client, clock
        self._expand_job = expand_job
        self._informers = informers or InformerSet(client, clock)
        self.mirror = self._informers.mirror
        self.timer = TurnTimer(clock, settings.schedule_period)
        self.configuration = Configuration(
            registry or load_registry(settings.plugins_dir),
            self.timer.wake,
            lambda record: self.sender.recorder.record(record),
        )
        self.metrics = SchedulerMetrics()
        self.recordings = RecordingRequests(settings.record_dir)
        self.pending = PendingChanges()
        self.decider = Decider(settings.of_cache, settings.scheduler_names[0], redact=settings.redact)
        self.sender = Sender(
            client,
            clock,
            mirror=self.mirror,
            pending=self.pending,
            metrics=self.metrics,
            on_failure=self._write_failed,
        )
        self.explainer = Explainer(self.mirror, clock, settings.of_cache, self.configuration, expand_job)
        self.reasons = WaitingReasons(client, clock, self.mirror, self.explainer, self.timer.wake)
        self.turns = 0
        self.last: Decisions | None = None
        self._overview = Overview()
        self.past_cycles = PastCycles()
        self._unwritten: list[Unwritten] = []
        self._ready = asyncio.Event()
        self._one_playback = asyncio.Lock()
        self._expected_starts: tuple[int, ExpectedStarts] | None = None  # with the turn after which it was computed

    async def ready(self) -> None:
        await self._ready.wait()

    @property
    def is_ready(self) -> bool:
        return self._ready.is_set()

    # -- life ----------------------------------------------------------------------------------------------------
    async def run(self) -> None:
        """Until cancelled. InvalidConfig when the settings require a configuration and there is none."""
        following = await start_configuration(self.configuration, self.settings, self.client, self.clock)
        await create_queues(self.client, self.clock, self.settings.default_queue)
        usage = NodeUsageReader(self.client, self.clock, self.configuration, self.pending.set_usage)
        async with asyncio.TaskGroup() as group:
            group.create_task(self.sender.recorder.run())
            if following is not None:
                group.create_task(following())
            group.create_task(usage.run())
            await follow(group, self._informers, timeout=self.settings.sync_timeout)
            self.pending.follow(self.mirror, self.timer.change)
            group.create_task(self.reasons.run())
            self._ready.set()
            try:
                await self._work()
            finally:
                self.sender.stop()

    async def _work(self) -> None:
        while True:
            await self.timer.due(lambda: self.pending.has_objects, lambda: self.sender.unsent_writes)
            try:
                await self._turn()
            except Exception:
                # A bug must not end scheduling: build the snapshot anew from the mirror, after a pause.
                log.exception("a scheduling cycle failed")
                self.decider.reset()
                self.pending.reload(self.mirror)
                await self.clock.sleep(PAUSE_AFTER_FAILURE)

    # -- turns ---------------------------------------------------------------------------------------------------
    async def _turn(self) -> None:
        begun = self.timer.begin()
        self.turns += 1
        turn = self._turn_input()
        result = await self.clock.run(lambda: self.decider.decide(turn))
        self.timer.end(begun)
        self._assume(result)
        self.timer.waits_for_time = _waits_for_time(turn, result) or bool(self._unwritten)
        self.last, self._overview = result.decisions, result.overview
        self.past_cycles.add(turn.number, turn.now, result.decisions, result.overview)
        self.metrics.report(result.decisions, self.decider.snapshot, turn.now)
        self.reasons.report(result.decisions.why, has_changes=bool(turn.batch.objects))
        self.sender.send(result.commitment)
        self._write_shard(turn.now)

    def _turn_input(self) -> TurnInput:
        unwritten, self._unwritten = tuple(self._unwritten), []
        return TurnInput(
            number=self.turns,
            now=self.clock.now(),
            batch=self.pending.take(),
            config=self.configuration.current,
            config_text=self.configuration.text,
            registry=self.configuration.registry,
            groups_in_flight=frozenset(self.sender.groups_in_flight),
            unwritten=unwritten,
            told=self.reasons.told(),
            record_to=self.recordings.take(),
        )

    def _assume(self, result: TurnResult) -> None:
        """Before anything is sent, so that no failure can come first."""
        self.pending.confirm(result.confirmed)
        self.pending.assume(result.bound, result.evicted, result.devices, result.annotations)

    def _write_failed(self, unwritten: Unwritten) -> None:
        self._unwritten.append(unwritten)
        self.timer.waits_for_time = True

    def _write_shard(self, now: datetime) -> None:
        shard = self.decider.snapshot.cluster.shard
        own = self.mirror.get(NodeShard, Key("", shard.name)) if shard.mode != "none" else None
        patch = shard_status(own, shard.nodes, now) if own is not None else None
        if patch is not None:
            self.sender.write_named("shard", patch)

    async def explain(self, question: JSON) -> WhyAnswer:
        """Why something waits, and which changes let it run; nothing is written. BadQuestion for a bad question."""
        return await self.explainer.answer(question)

    # -- simulations ---------------------------------------------------------------------------------------------
    async def simulate(self, request: JSON) -> Simulation:
        """What would happen to these pods or this Job now; nothing is written. BadSimulation for a bad request."""
        known = self._known()
        return await self.clock.run(lambda: simulate(known, request))

    async def expected_starts(self) -> ExpectedStarts:
        """When waiting jobs will start. An answer is given again while no cycle has run, for at most a minute."""
        async with self._one_playback:
            kept, now = self._expected_starts, self.clock.now()
            if kept is None or kept[0] != self.turns or now - kept[1].at > MAX_AGE_OF_STARTS:
                known, turn, budget = self._known(), self.turns, PlaybackBudget()
                kept = (turn, await self.clock.run(lambda: expected_starts(known, budget.allows)))
                self._expected_starts = kept
            return kept[1]

    async def job_priorities(self) -> JobPriorities:
        """What the places of waiting jobs are made of."""
        known = self._known()
        return await self.clock.run(lambda: job_priorities(known))

    def _known(self) -> Known:
        """What a simulation starts from; it is collected on the event loop and not changed afterwards."""
        assumptions = self.pending.assumptions()
        return Known(
            self.settings.of_cache,
            {kind: self.mirror.all(kind) for kind in FOLLOWED},
            self.configuration.current,
            self.configuration.registry,
            self.clock.now(),
            self._expand_job,
            assumptions.assumed,
            assumptions.evicting,
            assumptions.annotations,
        )

    # -- state ---------------------------------------------------------------------------------------------------
    def state(self) -> JSON:
        """What the scheduler is doing, for people."""
        return {
            "ready": self.is_ready,
            "turns": self.turns,
            "configurationSource": self.configuration.source,
            "configurationActions": list(self.configuration.current.actions),
            "configurationPlugins": list(self.configuration.current.plugin_names),
            "configurationProblem": self.configuration.problem,
            "configurationDoubts": self.configuration.warnings,
            "nodes": self._overview.nodes,
            "jobs": self._overview.jobs,
            "tasks": self._overview.tasks,
            "setAside": dict(self._overview.set_aside),
        }


def _waits_for_time(turn: TurnInput, result: TurnResult) -> bool:
    """Whether another turn should follow after a period even if no object changes."""
    decisions = result.decisions
    waiting = decisions.why or decisions.pods or decisions.pipelined or decisions.dropped or turn.groups_in_flight
    return bool(waiting or decisions.kept) or decisions.needs_another_cycle or result.commitment.postponed
