"""easy: the first waiting job that does not fit gets a reservation; others start only if they do not delay it.

This is EASY backfill. A reservation is the earliest time at which the job's gang fits, computed from the estimated
ends of what runs, with the nodes it then takes. Another job may start before it if its own estimate ends by that time,
or if it uses only what the reservation leaves.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from datetime import timedelta
from functools import cmp_to_key
from typing import Final

import numpy as np

from volcano.api.jobs.why import ENQUEUE, Why
from volcano.scheduler.core.aging import aging_points
from volcano.scheduler.core.node_table import Mask
from volcano.scheduler.core.node_view import NodeView
from volcano.scheduler.core.releases import expected_end, started_at
from volcano.scheduler.framework.answers import Cause, Code, Refusal, Vote
from volcano.scheduler.framework.plugin import Plugin
from volcano.scheduler.framework.run_time_estimates import DEFAULT_ESTIMATE, DEFAULT_ESTIMATE_ARGUMENT
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import Job, Resources, Status, Task
from volcano.scheduler.plugins.easy.earliest_fit import TOLERANCE, fits_now
from volcano.scheduler.plugins.easy.reserver import HeldReservation, Reserver

ORDERS: Final = ("submit", "priority", "shortest")
SCOPES: Final = ("queue", "cluster")
CLUSTER: Final = ""


class Easy(Plugin):
    name = "easy"
    argument_names = frozenset(
        {"easy.order", "easy.strict", "easy.reservations", "easy.scope", DEFAULT_ESTIMATE_ARGUMENT, "easy.aging"}
    )

    def open(self, session: Session) -> None:
        super().open(session)
        arguments = self.arguments
        self._order = arguments.text("easy.order", "submit")
        self._strict = arguments.flag("easy.strict", False)
        self._limit = max(arguments.integer("easy.reservations", 1), 1)
        self._per_queue = arguments.text("easy.scope", "queue") != "cluster"
        self._aging = arguments.number("easy.aging", 0.0)
        self._default = arguments.duration(DEFAULT_ESTIMATE_ARGUMENT) or DEFAULT_ESTIMATE
        self._held: list[tuple[str, HeldReservation]] = []  # with their scopes, in the order in which room was sought
        self._blocked: dict[str, list[Job]] = {}  # jobs of a scope that are in their queue and do not run yet
        self._undecided: dict[str, Job] = {}  # the first job of a scope that the next cycle must decide about
        self._admitted: list[Job] = []  # in this cycle: their pods do not exist yet
        self._previews: dict[str, tuple[float, Resources] | None] = {}
        self._idle: Resources | None = None
        self._reserver = Reserver(session, self._default)
        self._generation = 0
        self._may_move = False  # what was placed leaves in time: reservations may use its nodes, and leave others
        self._holds_promises = False
        for job in session.waiting:
            if not job.is_pending and not job.is_ready:
                self._blocked.setdefault(self._scope(job), []).append(job)

    # -- order --------------------------------------------------------------------------------------------------------
    def job_order(self, one: Job, other: Job) -> int:
        mine, theirs = self._rank(one), self._rank(other)
        return (mine > theirs) - (mine < theirs)

    def _rank(self, job: Job) -> float:
        if self._order == "shortest":
            return self._estimate(job).total_seconds()
        if self._order != "priority":
            return 0.0
        return -(job.priority + aging_points(job, self.session.now, self._aging))

    # -- into the queue -----------------------------------------------------------------------------------------------
    def enqueue_ends_at(self, job: Job) -> bool:
        """Whether neither this job nor those after it need be asked about."""
        ends = self._strict and self._is_behind(job)
        if ends:
            self._undecided.setdefault(self._scope(job), job)
        return ends

    def job_enqueueable(self, job: Job) -> Vote:
        """Let in what fits now, and the first jobs that do not, so that they have pods to reserve room for."""
        if job.min_resources is None:
            return Vote.PERMIT
        fits = not job.min_resources.exceeds_requested(self._idle_room(), job.min_resources)
        if not self._is_behind(job):
            if not fits:
                self._blocked.setdefault(self._scope(job), []).append(job)
            return Vote.PERMIT
        if not self._strict and self._would_not_delay(job, fits=fits):
            return Vote.PERMIT
        self.session.record.refuse(job.id, Why(ENQUEUE, "waits behind a reservation", self.name))
        return Vote.REJECT

    def job_enqueued(self, job: Job) -> None:
        self._admitted.append(job)
        if job.min_resources is not None:
            _subtract(self._idle_room(), job.min_resources)

    def _idle_room(self) -> Resources:
        if self._idle is None:
            table = self.session.table
            sums = table.idle.sum(axis=1)
            self._idle = Resources({name: float(sums[at]) for name, at in table.resources.items()})
        return self._idle

    def _is_behind(self, job: Job) -> bool:
        """Whether as many jobs as get reservations come before this one."""
        before, count = self.session.ask.job_before, 0
        for blocked in self._blocked.get(self._scope(job), ()):
            count += before(blocked, job)
            if count >= self._limit:
                return True
        return False

    def _would_not_delay(self, job: Job, *, fits: bool) -> bool:
        """Whether the job may start before the first blocked one, which must have pods for that to be known."""
        scope = self._scope(job)
        preview = self._preview(scope)
        if preview is None or job.min_resources is None:
            self._undecided.setdefault(scope, job)
            return False
        if not fits:
            return False
        seconds, spare = preview
        if self._estimate(job).total_seconds() <= seconds + TOLERANCE:
            return True
        if job.min_resources.exceeds_requested(spare, job.min_resources):
            return False
        _subtract(spare, job.min_resources)
        return True

    def _preview(self, scope: str) -> tuple[float, Resources] | None:
        """When the first blocked job would start and what it leaves till then; None: it fits now or has no pods."""
        if scope not in self._previews:
            first = min(self._blocked[scope], key=cmp_to_key(self._compare))
            found = self._reserver.reserve(first, self._all_held()) if first.tasks else None
            known = None if found is None or found.seconds <= 0.0 else (found.seconds, self._spare_now(found))
            self._previews[scope] = known
        return self._previews[scope]

    def _compare(self, one: Job, other: Job) -> int:
        return -1 if self.session.ask.job_before(one, other) else 1

    def _spare_now(self, held: HeldReservation) -> Resources:
        """What others may take now and keep beyond the time of a reservation."""
        table = self.session.table
        spare = np.minimum(held.spare, np.maximum(table.idle, 0.0)).clip(min=0.0).sum(axis=1)
        return Resources({name: float(spare[at]) for name, at in table.resources.items()})

    # -- starting -----------------------------------------------------------------------------------------------------
    def job_startable(self, job: Job) -> Refusal | None:
        self._hold_promises()
        if self._may_move:
            self._choose_nodes_again()
        before, scope = self.session.ask.job_before, self._scope(job)
        undecided = self._undecided.get(scope)
        if undecided is not None and before(undecided, job):
            return Refusal("Reserved", f"waits behind {undecided.id}, which comes first")
        for admitted in self._admitted:
            if self._scope(admitted) == scope and before(admitted, job):
                return Refusal("Reserved", f"waits for the pods of {admitted.id}, which comes first")
        for held in self._all_held():
            if held.job is job:
                continue
            if self._strict and (not self._per_queue or held.job.queue == job.queue):
                return Refusal("Reserved", f"waits behind {held.job.id}, which comes first")
        if not job.is_ready and not self._could_fit(job):
            self.job_not_placed(job)
            return Refusal("NotEnoughRoom", "its gang does not fit now")
        return None

    def _could_fit(self, job: Job) -> bool:
        """By amounts alone: what this refuses, placing task by task would refuse, too, at many times the cost."""
        first = next(iter(job.by_status[Status.PENDING].values()), None)
        if first is not None and job.counts.ready < job.min_available and not self._has_room_for_one(first):
            return False
        return fits_now(self.session.table.future_idle, self._reserver.demands(job))

    def _has_room_for_one(self, task: Task) -> bool:
        """The answer is kept for each shape until a node changes."""
        return task.best_effort or bool(self.session.nodes.room(task).future.any())

    def _hold_promises(self) -> None:
        """Keep the room of jobs that were promised a start, before queues that are served earlier can take it.

        A promise holds while no other job of the same queue has come before the job. With other orders than that of
        submission a job that has not entered its queue may come before it, and without backfill the order is enough.
        """
        if self._holds_promises or self._strict or self._order != "submit":
            return
        self._holds_promises = True
        promised = [job for jobs in self._blocked.values() for job in jobs if job.reservation is not None]
        self._reserver.keeps_nodes = len(promised) > 1
        for job in sorted(promised, key=lambda job: (job.reservation.place if job.reservation else 0, job.id)):
            if job.is_pending or job.is_ready or not job.tasks or self._is_overtaken(job):
                continue
            self._hold(job, not_before=0.0)

    def _is_overtaken(self, job: Job) -> bool:
        before, count = self.session.ask.job_before, 0
        for other in self._blocked[self._scope(job)]:
            count += other is not job and other.queue == job.queue and not other.is_ready and before(other, job)
            if count >= self._limit:
                return True
        return False

    def job_not_placed(self, job: Job) -> None:
        """The job's gang does not fit now: reserve the earliest room for it if it is one of the first."""
        if job.is_ready:
            return
        known = next((each for _, each in self._held if each.job is job), None)
        if (known is not None and known.seconds > 0.0) or (known is None and self._is_full(self._scope(job))):
            return
        if known is not None:
            self._held = [pair for pair in self._held if pair[1] is not known]
            self._generation += 1
        # What does not fit now although amounts say so is tried again when something has changed.
        self._hold(job, not_before=self._reserver.next_change())

    def _hold(self, job: Job, *, not_before: float) -> None:
        scope = self._scope(job)
        if self._is_full(scope):
            return
        found = self._reserver.reserve(job, self._all_held(), not_before=not_before)
        if found is not None:
            self._held.append((scope, found))
            self._generation += 1

    def _choose_nodes_again(self) -> None:
        """Nodes of jobs that have just started and end in time can be reserved: that leaves idle ones to the others."""
        self._may_move = False
        again: list[tuple[str, HeldReservation]] = []
        for scope, held in self._held:
            if held.job.is_ready:
                continue
            found = self._reserver.reserve(held.job, [each for _, each in again], not_before=held.seconds)
            if found is None or found.seconds > held.seconds + TOLERANCE:
                return
            again.append((scope, found))
        self._held = again
        self._generation += 1

    def _is_full(self, scope: str) -> bool:
        """Whether as many reservations are held as there may be."""
        return sum(each == scope for each, _ in self._held) >= self._limit

    def close(self, session: Session) -> None:
        for place, held in enumerate(self._all_held()):
            session.record.reservations[held.job.id] = self._reserver.written(held, place)

    # -- nodes --------------------------------------------------------------------------------------------------------
    def sharing_key(self, task: Task) -> Hashable:
        """Tasks that would still run at the time of a reservation are refused nodes that others are not."""
        job = self.session.job_of(task)
        if job is None or self._reserver.is_asking:
            return ("any", self._generation)
        every = self._all_held()
        late = tuple(held.job.id for held in every if self._is_late(job, held))
        own = job.id if any(held.job is job for held in every) else ""
        return (own, *late, self._generation)

    def node_filter(self, task: Task, nodes: NodeView) -> Iterable[Cause]:
        """Evicting others would not help: what they release at their end is counted in what is left already."""
        job = self.session.job_of(task)
        if job is None or self._reserver.is_asking:
            return
        request = self.session.table.vector(task.request)
        for held in self._all_held():
            if not self._is_late(job, held):
                continue
            spare = held.left_for(job, nodes.rows)
            wanted = request[:, None] * (1.0 + nodes.copies)[None, :]
            refused: Mask = np.any((wanted > spare + TOLERANCE) & (request[:, None] > 0.0), axis=0)
            if refused.any():
                yield Cause(refused, Code.UNRESOLVABLE, f"reserved for {held.job.id}")

    def on_allocate(self, task: Task) -> None:
        self._take(task, -1.0)

    def on_deallocate(self, task: Task) -> None:
        self._take(task, 1.0)

    def _take(self, task: Task, sign: float) -> None:
        self._reserver.forget_releases()
        if not self._held:
            return
        job, row = self.session.job_of(task), self.session.table.index.get(task.node)
        if job is None or row is None:
            return
        now = self.session.now
        left = (expected_end(started_at(task, now), self._estimate(job), now) - now).total_seconds()
        for held in self._all_held():
            if job is held.job:
                continue
            if left > held.seconds + TOLERANCE:
                held.spare[:, row] += sign * self.session.table.vector(task.request)
            else:
                self._may_move = True

    # -- small questions ----------------------------------------------------------------------------------------------
    def _all_held(self) -> list[HeldReservation]:
        """Those whose jobs have not started in this cycle."""
        return [held for _, held in self._held if not held.job.is_ready]

    def _is_late(self, job: Job, held: HeldReservation) -> bool:
        return job is not held.job and self._estimate(job).total_seconds() > held.seconds + TOLERANCE

    def _estimate(self, job: Job) -> timedelta:
        return job.expected_run_time(self._default)

    def _scope(self, job: Job) -> str:
        return job.queue if self._per_queue else CLUSTER


def _subtract(amount: Resources, taken: Resources) -> None:
    for name, value in taken.amounts.items():
        amount.amounts[name] = max(amount[name] - value, 0.0)
