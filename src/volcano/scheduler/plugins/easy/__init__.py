"""easy: the first waiting job that does not fit gets a reservation; others start only if they do not delay it.

This is EASY backfill. A reservation is the earliest time at which the job's gang fits, computed from the estimated
ends of what runs, with the nodes it then takes. Another job may start before it if its own estimate ends by that time,
or if it uses only what the reservation leaves.
"""

from __future__ import annotations

from collections import deque
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
from volcano.scheduler.model import Job, Queue, Resources, Status, Task
from volcano.scheduler.plugins.easy.earliest_fit import TOLERANCE, fits_now
from volcano.scheduler.plugins.easy.held_reservation import HeldReservation, HeldReservations
from volcano.scheduler.plugins.easy.reserver import Reserver

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
        self._held = HeldReservations()
        self._blocked: dict[str, list[Job]] = {}  # jobs of a scope that are in their queue and do not run yet
        self._outside: dict[str, list[Job]] = {}  # jobs of a scope that have not entered their queue
        self._lines: dict[str, deque[Job]] = {}  # blocked jobs of a scope, in order
        self._hopeless: dict[str, bool] = {}  # by job: whether it fits at no time
        self._undecided: dict[str, Job] = {}  # the first job of a scope that the next cycle must decide about
        self._admitted: list[Job] = []  # in this cycle: their pods do not exist yet
        self._previews: dict[str, tuple[float, Resources] | None] = {}
        self._idle: Resources | None = None
        self._reserver = Reserver(session, self._default)
        self._may_move = False  # what was placed leaves in time: reservations may use its nodes, and leave others
        self._holds_promises = False
        for job in session.waiting:
            if job.is_pending:
                self._outside.setdefault(self._scope(job), []).append(job)
            elif not job.is_ready:
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
            count += before(blocked, job) and not self._never_fits(blocked)
            if count >= self._limit:
                return True
        return False

    def _never_fits(self, job: Job) -> bool:
        """Whether it would not fit if all that runs had ended: nothing is kept for it, and no job waits behind it."""
        if job.id not in self._hopeless:
            self._hopeless[job.id] = bool(job.tasks) and self._reserver.reserve(job, ()) is None
        return self._hopeless[job.id]

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
            self._hold_promises()
            blocked = [job for job in self._blocked[scope] if not self._hopeless.get(job.id)]
            first = min(blocked, key=cmp_to_key(self._compare))
            found = self._held.of(first)
            known: tuple[float, Resources] | None = None
            if found is None and first.tasks:
                found = self._reserver.reserve(first, self._held)
                known = (float("inf"), Resources())  # there is no time for it beside other reservations
            if found is not None:
                known = None if found.is_due else (found.seconds, self._spare_now(found))
            self._previews[scope] = known
        return self._previews[scope]

    def _compare(self, one: Job, other: Job) -> int:
        return -1 if self.session.ask.job_before(one, other) else 1

    def _spare_now(self, held: HeldReservation) -> Resources:
        """What others may take now and keep beyond the time of a reservation."""
        table = self.session.table
        self._held.count_again()
        spare = np.minimum(held.left, np.maximum(table.idle, 0.0)).clip(min=0.0).sum(axis=1)
        return Resources({name: float(spare[at]) for name, at in table.resources.items()})

    # -- starting -----------------------------------------------------------------------------------------------------
    def job_startable(self, job: Job) -> Refusal | None:
        self._hold_promises()
        if self._may_move:
            self._choose_nodes_again()
        own = self._held.of(job)
        if own is not None and own.is_due and not self._strict:
            return None
        if own is None and (first := self._undecided_before(job)) is not None:
            return first
        if not self._per_queue:
            self._hold_those_before(job)
        for held in self._held:
            if self._strict and held.job is not job and (not self._per_queue or held.job.queue == job.queue):
                return Refusal("Reserved", f"waits behind {held.job.id}, which comes first")
        if not job.is_ready and not self._could_fit(job):
            self.job_not_placed(job)
            return Refusal("NotEnoughRoom", "its gang does not fit now")
        return None

    def _undecided_before(self, job: Job) -> Refusal | None:
        before, scope = self.session.ask.job_before, self._scope(job)
        undecided = self._undecided.get(scope)
        if undecided is not None and before(undecided, job):
            return Refusal("Reserved", f"waits behind {undecided.id}, which comes first")
        for admitted in self._admitted:
            if self._scope(admitted) == scope and before(admitted, job):
                return Refusal("Reserved", f"waits for the pods of {admitted.id}, which comes first")
        return None

    def _hold_those_before(self, job: Job) -> None:
        """Queues take turns, so jobs of other queues that come first may have theirs later: they keep their room."""
        scope = self._scope(job)
        if scope not in self._lines:
            self._lines[scope] = deque(sorted(self._blocked.get(scope, ()), key=cmp_to_key(self._compare)))
        line = self._lines[scope]
        while line and not self._is_full(scope):
            first = line[0]
            if first is job or not first.tasks:
                return
            line.popleft()
            if not first.is_ready and self._held.of(first) is None:
                self._hold(first, not_before=0.0)

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
        """Keep the room of jobs that were promised a start, before anything else is decided.

        All that still hold are restored before one of them may move to an earlier time, so that none takes the room
        of another. Without backfill the order is enough.
        """
        if self._holds_promises or self._strict:
            return
        self._holds_promises = True
        promised = [job for jobs in self._blocked.values() for job in jobs if job.reservation is not None and job.tasks]
        promised = [job for job in promised if not job.is_ready and not self._is_overtaken(job)]
        promised.sort(key=lambda job: (job.reservation.place if job.reservation else 0, job.id))
        self._reserver.keeps_nodes = len(promised) > 1
        moved = [job for job in promised if not self._restore(job)]
        for job in promised:
            if job in moved:
                self._hold(job, not_before=0.0)
            else:
                self._reserve_again(job)

    def _restore(self, job: Job) -> bool:
        held = None if self._is_full(self._scope(job)) else self._reserver.restore(job, self._held)
        if held is not None:
            self._held.add(self._scope(job), held)
        return held is not None

    def _is_overtaken(self, job: Job) -> bool:
        """Whether a job that was created since comes before it, and so many others that it is none of the first."""
        made = job.reservation.made if job.reservation is not None else None
        before, count, is_overtaken, scope = self.session.ask.job_before, 0, False, self._scope(job)
        for other in (*self._blocked.get(scope, ()), *self._outside.get(scope, ())):
            if other is not job and not other.is_ready and before(other, job):
                count += 1
                is_overtaken = is_overtaken or made is None or other.created > made
                if is_overtaken and count >= self._limit:
                    return True
        return False

    def job_not_placed(self, job: Job) -> None:
        """The job's gang does not fit now: reserve the earliest room for it if it is one of the first."""
        if job.is_ready:
            return
        known = self._held.of(job)
        if (known is not None and not known.is_due) or (known is None and self._is_full(self._scope(job))):
            return
        if known is not None:
            self._held.remove(known)
        # What does not fit now although amounts say so is tried again when something has changed. A gang of several
        # shapes may only have been placed in the wrong order: with a reservation, the next cycle follows a plan.
        is_new = known is None and len(self._reserver.demands(job)) > 1
        self._hold(job, not_before=0.0 if is_new else self._reserver.next_change())

    def _hold(self, job: Job, *, not_before: float) -> None:
        scope = self._scope(job)
        if self._is_full(scope):
            return
        found = self._reserver.reserve(job, self._held, not_before=not_before)
        if found is not None:
            self._held.add(scope, found)

    def _choose_nodes_again(self) -> None:
        """Nodes of jobs that have just started and end in time can be reserved: that leaves idle ones to the others."""
        self._may_move = False
        for held in self._held.waiting():
            self._reserve_again(held.job, not_before=held.seconds)

    def _reserve_again(self, job: Job, *, not_before: float = 0.0) -> None:
        """At an earlier time or on better nodes, where that takes nothing from another reservation."""
        held = self._held.of(job)
        assert held is not None, "only what is held is reserved again"
        found = self._reserver.reserve(job, self._held.others(job), not_before=not_before)
        if found is None or found.seconds > held.seconds + TOLERANCE:
            return
        found.made = held.made
        if found.seconds < held.seconds - TOLERANCE or not self._reserver.keeps_nodes or not_before > 0.0:
            self._held.replace(held, found)

    def _is_full(self, scope: str) -> bool:
        """Whether as many reservations are held as there may be."""
        return self._held.count(scope) >= self._limit

    def close(self, session: Session) -> None:
        for place, held in enumerate(self._held):
            session.record.reservations[held.job.id] = self._reserver.written(held, place)

    # -- queues -------------------------------------------------------------------------------------------------------
    def allocatable(self, queue: Queue, task: Task) -> bool:
        """Room of nodes is not all that a promised job needs: its queue must not be full by then."""
        job = self.session.job_of(task)
        if job is None or self._reserver.is_asking:
            return True
        waiting = self._held.waiting()
        late = [held for held in waiting if self._is_late(job, held)]
        others = [held for held in waiting if held.job is not job]
        return all(self._reserver.quota_leaves(held, others, task, queue.name) for held in late)

    # -- nodes --------------------------------------------------------------------------------------------------------
    def sharing_key(self, task: Task) -> Hashable:
        """Tasks that would still run at the time of a reservation are refused nodes that others are not."""
        job = self.session.job_of(task)
        if job is None or self._reserver.is_asking:
            return ("any",)
        every = self._held.waiting()
        late = tuple(held.job.id for held in every if self._is_late(job, held))
        own = job.id if any(held.job is job for held in every) else ""
        return (own, *late, len(every), self._held.generation)

    def node_filter(self, task: Task, nodes: NodeView) -> Iterable[Cause]:
        """Evicting others would not help: what they release at their end is counted in what is left already."""
        job = self.session.job_of(task)
        if job is None or self._reserver.is_asking:
            return
        request = self.session.table.vector(task.request)
        for held in self._held:
            if held.job is job and (planned := held.planned(task, nodes.rows)) is not None:
                yield Cause(planned < 1.0 + nodes.copies, Code.UNRESOLVABLE, "the gang is planned on other nodes")
            if not self._is_late(job, held):
                continue
            left = self._held.left_for(held, job, nodes.rows)
            wanted = request[:, None] * (1.0 + nodes.copies)[None, :]
            refused: Mask = np.any((wanted > left + TOLERANCE) & (request[:, None] > 0.0), axis=0)
            if refused.any():
                yield Cause(refused, Code.UNRESOLVABLE, f"reserved for {held.job.id}")

    def on_allocate(self, task: Task) -> None:
        self._take(task, -1.0)

    def on_deallocate(self, task: Task) -> None:
        self._take(task, 1.0)

    def _take(self, task: Task, sign: float) -> None:
        self._reserver.forget_releases()
        job, row = self.session.job_of(task), self.session.table.index.get(task.node)
        if job is None or row is None:
            return
        now = self.session.now
        left = (expected_end(started_at(task, now), self._estimate(job), now) - now).total_seconds()
        amount = sign * self.session.table.vector(task.request)
        self._may_move = self._held.take(job, task, row, amount, left) or self._may_move

    # -- small questions ----------------------------------------------------------------------------------------------
    def _is_late(self, job: Job, held: HeldReservation) -> bool:
        return job is not held.job and self._estimate(job).total_seconds() > held.seconds + TOLERANCE

    def _estimate(self, job: Job) -> timedelta:
        return job.expected_run_time(self._default)

    def _scope(self, job: Job) -> str:
        return job.queue if self._per_queue else CLUSTER


def _subtract(amount: Resources, taken: Resources) -> None:
    for name, value in taken.amounts.items():
        amount.amounts[name] = max(amount[name] - value, 0.0)
