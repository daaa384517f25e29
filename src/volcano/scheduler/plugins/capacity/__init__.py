"""capacity: each queue has a stated deserved, guaranteed and greatest amount; it may borrow, and lenders reclaim."""

from __future__ import annotations

from collections.abc import Sequence

from volcano.api.jobs.why import ENQUEUE, QUEUE, Why
from volcano.scheduler.core.queue_shares import summed
from volcano.scheduler.framework.answers import Vote
from volcano.scheduler.framework.plugin import Plugin
from volcano.scheduler.framework.record import Note
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import Job, Queue, Resources, Status, Task
from volcano.scheduler.plugins.capacity.accounts import Account, flat_accounts, tree_accounts
from volcano.scheduler.plugins.capacity.devices import EXCEEDED, Devices
from volcano.scheduler.plugins.capacity.reclaim import Reclaim, shares_a_dimension
from volcano.scheduler.solve.victims import victims_first


class Capacity(Plugin):
    name = "capacity"
    argument_names = frozenset(
        {"ancestorReclaimLevel", "capacity.DynamicResourceAllocationEnable", "capacity.DRAConsumableCapacityEnable"}
    )

    def open(self, session: Session) -> None:
        super().open(session)
        self._levels = max(self.arguments.integer("ancestorReclaimLevel", 0), 0) if self.hierarchy else 0
        accounts = tree_accounts(session) if self.hierarchy else flat_accounts(session)
        self._is_ready = accounts is not None
        self.accounts = self._accounts = accounts or {}
        self._lines = {name: [member.name for member in account.line] for name, account in self._accounts.items()}
        counts_devices = self.arguments.flag("capacity.DynamicResourceAllocationEnable", True)
        counts_capacity = self.arguments.flag("capacity.DRAConsumableCapacityEnable", True)
        devices = Devices(session, counts_capacity=counts_capacity)
        self._devices = devices if counts_devices and devices else None
        if self._devices is not None:
            self._devices.open(session, self._lines)
        self._evicted: set[str] = set()  # in this session
        self._reserved: dict[str, dict[str, Task]] = {}  # queue → tasks whose gate is being removed
        for job in session.jobs.values() if session.admits_by_gate else ():
            for task in job.by_status[Status.PENDING].values():
                if task.asks_for_queue_admission and not task.is_gated:
                    self._reserve(job.queue, task)

    def close(self, session: Session) -> None:
        for name, queue in session.queues.items():
            account = self._accounts.get(name)
            if queue.is_charged:
                session.record.gauge("queue_weight", queue.weight, name)
            if account is None:
                continue
            session.record.gauge("queue_share", account.share, name)
            session.record.gauge("queue_overused", float(account.share > 1.0), name)
            for kind in ("allocated", "request", "deserved", "inqueue", "real_capability"):
                metric = "queue_real_capacity" if kind == "real_capability" else f"queue_{kind}"
                session.record.gauge_amount(metric, getattr(account, kind), name)
            session.record.gauge_amount("queue_capacity", account.capability or Resources(), name)
        if self._devices is not None:
            session.record.queue_allocated.update(self._devices.told())

    # -- orders --------------------------------------------------------------------------------------------------------
    def queue_order(self, one: Queue, other: Queue) -> int:
        if not self._is_ready:
            return 0
        if one.priority != other.priority:
            return other.priority - one.priority
        mine, theirs = self._accounts.get(one.name), self._accounts.get(other.name)
        if mine is None or theirs is None:
            return (mine is None) - (theirs is None)
        if not self.hierarchy:
            return _compare_shares(mine, theirs)
        if mine.is_leaf != theirs.is_leaf:
            return -1 if mine.is_leaf else 1
        if not mine.is_leaf:
            return _compare_shares(mine, theirs)
        level = _common_level(mine, theirs) + 1
        return _compare_shares(_at_level(mine, level), _at_level(theirs, level))

    def victim_queue_order(self, one: Queue, other: Queue, preemptor: Queue) -> int:
        """Relatives give first."""
        places = [self._accounts.get(queue.name) for queue in (one, other, preemptor)]
        if not self.hierarchy or None in places:
            return 0
        mine, theirs, ours = (place for place in places if place is not None)
        return _common_level(theirs, ours) - _common_level(mine, ours)

    # -- how much ------------------------------------------------------------------------------------------------------
    def allocatable(self, queue: Queue, task: Task) -> bool:
        if not queue.is_open or not self.simulate_allocatable(queue, task):
            return False
        if self.session.admits_by_gate and task.asks_for_queue_admission:
            self._reserve(queue.name, task)
        return True

    def simulate_allocatable(self, queue: Queue, task: Task) -> bool:
        if not queue.is_charged:
            return True
        account = self._accounts.get(queue.name)
        if account is None or not account.is_leaf:
            return False
        if self._devices is not None and not self._devices.allow(task, self._lines[queue.name]):
            return False
        request = task.request
        if self._reserved:
            request = request + summed(t for t in self._reserved.get(queue.name, {}).values() if t.uid != task.uid)
            held = account.allocated + request
            if not held.within_requested(account.real_capability, task.request):
                return False
            line = account.line[1:]
        else:
            line = account.line
        return not any(member.would_exceed(task.request, member.real_capability) for member in line)

    def bindable(self, queue: Queue, task: Task) -> bool:
        account = self._accounts.get(queue.name)
        return account is None or all(member.has_room_to_bind(task.request) for member in account.line)

    def preemptive(self, queue: Queue, tasks: Sequence[Task]) -> bool:
        """Whether the queue may take from others: something it asks for stays within what it deserves."""
        account = self._accounts.get(queue.name)
        if account is None or not queue.is_open:
            return False
        asked = summed(tasks)
        if account.would_exceed(asked, account.real_capability):
            return False
        entitled = [account, *(account.above(depth) for depth in range(1, self._levels + 1))]
        return any(
            (member.allocated + asked).partly_within(member.deserved, asked)
            for member in entitled
            if member is not None
        )

    # -- who gives -----------------------------------------------------------------------------------------------------
    def reclaimable(self, reclaimer: Task, candidates: list[Task]) -> list[Task]:
        ours = self._account_of(reclaimer)
        if ours is None:
            return []
        search = Reclaim(reclaimer, ours, levels=self._levels)
        waiting = victims_first(self.session, reclaimer, candidates)
        victims = []
        while waiting:
            task = waiting.pop()
            account = self._account_of(task)
            if account is not None and search.takes(task, account):
                victims.append(task)
        return victims

    def evictable(self, kind: str, job: Job, candidates: list[Task]) -> list[Task]:
        if kind == "GangPreempt":
            return list(candidates)
        left: dict[str, Resources] = {}
        victims = []
        for task in candidates:
            account = self._account_of(task)
            if account is None:
                continue
            held = left.setdefault(account.name, account.allocated.copy())
            if not account.guarantee.fits(held - task.request):
                continue
            stated = shares_a_dimension(task.request, account.deserved)
            if not stated or held.beyond_stated(account.deserved, task.request):
                held.subtract(task.request)
                victims.append(task)
        return victims

    # -- entering ------------------------------------------------------------------------------------------------------
    def job_enqueueable(self, job: Job) -> Vote:
        queue, account = self.session.queues[job.queue], self._accounts.get(job.queue)
        refuse = self.session.record.refuse
        if account is None or not account.is_leaf:
            why = (
                "is not a leaf"
                if account
                else self.session.snapshot.set_aside.get(f"Queue/{queue.name}", "has no root")
            )
            refuse(job.id, Why(QUEUE, f"queue {queue.name} cannot hold jobs: {why}", self.name))
            return Vote.REJECT
        if not queue.is_open:
            refuse(job.id, Why(QUEUE, f"queue {queue.name} is {queue.state}", self.name))
            return Vote.REJECT
        exceeded = self._exceeded_by(job, account)
        if exceeded is None:
            return Vote.PERMIT
        name, over = exceeded
        message = "queue resource quota insufficient: " + ", ".join(f"insufficient {resource}" for resource in over)
        self.session.record.notes.append(Note(job.id, "Unschedulable", message))
        refuse(job.id, Why(ENQUEUE, f"queue {name} resource quota insufficient", self.name, message))
        return Vote.REJECT

    def _exceeded_by(self, job: Job, account: Account) -> tuple[str, list[str]] | None:
        """The queue, this one or one above it, that may not hold so much more, and what of."""
        asked = job.min_resources
        for member in account.line if asked is not None else ():
            assert asked is not None
            over = member.wanted_with(asked).exceeds_requested(member.real_capability, asked)
            if over:
                return member.name, over
        if self._devices is not None:
            full = self._devices.allow_entry(self._devices.least_of(job), self._lines[account.name])
            if full is not None:
                return full, [EXCEEDED]
        return None

    def job_enqueued(self, job: Job) -> None:
        account = self._accounts.get(job.queue)
        if self._devices is not None and account is not None:
            self._devices.entered(self._devices.least_of(job), self._lines[account.name])
        if account is None or job.min_resources is None:
            return
        spoken_for = job.without_gated(job.min_resources)
        for member in account.line:
            member.inqueue.add(spoken_for)

    # -- following placements ------------------------------------------------------------------------------------------
    def on_allocate(self, task: Task) -> None:
        account = self._account_of(task)
        if account is None:
            return
        for member in account.line:
            member.allocated.add(task.request)
        account.refresh_share()
        if task.uid in self._evicted:
            self._evicted.remove(task.uid)
            for member in account.line:
                member.leaving.withdraw(task.request)
        if self._devices is not None and task.claims:
            self._devices.charge(task, self._lines[account.name])
        if self._reserved:
            self._reserved.get(account.name, {}).pop(task.uid, None)

    def alike_limit(self, job: Job, task: Task, number: int) -> int:
        """As many as the queue and those above it may hold, where nothing but amounts is counted."""
        queue, account = self.session.queues[job.queue], self._accounts.get(job.queue)
        if account is None or not account.is_leaf or not queue.is_open or self._evicted:
            return 0
        if self._devices is not None or self._reserved or self.session.admits_by_gate:
            return 0
        for member in account.line:
            if member.waits_for_leavers:
                return 0
            number = member.most_alike(task.request, member.real_capability, number)
        return number

    def on_allocate_alike(self, tasks: Sequence[Task]) -> None:
        account = self._account_of(tasks[0])
        if account is None:
            return
        request = tasks[0].request * len(tasks)
        for member in account.line:
            member.allocated.add(request)
        account.refresh_share()

    def on_deallocate(self, task: Task) -> None:
        account = self._account_of(task)
        if account is None:
            return
        for member in account.line:
            member.allocated.subtract(task.request)
        account.refresh_share()
        if task.status == Status.RELEASING:
            self._evicted.add(task.uid)
            for member in account.line:
                member.leaving.add(task.request)
        if self._devices is not None and task.claims:
            self._devices.credit(task, self._lines[account.name])
        if self.session.admits_by_gate and task.asks_for_queue_admission:
            self._reserve(account.name, task)

    def _account_of(self, task: Task) -> Account | None:
        job = self.session.jobs.get(task.job_id)
        return self._accounts.get(job.queue) if job else None

    def _reserve(self, queue: str, task: Task) -> None:
        self._reserved.setdefault(queue, {})[task.uid] = task


def _compare_shares(one: Account, other: Account) -> int:
    """The smaller share first; of equal ones, a queue that deserves something."""
    if one.share != other.share:
        return -1 if one.share < other.share else 1
    return one.deserved.is_empty - other.deserved.is_empty


def _common_level(one: Account, other: Account) -> int:
    """How far from the root the two have the same ancestors; -1 when not even the root is shared."""
    level = -1
    for mine, theirs in zip(one.ancestors, other.ancestors, strict=False):
        if mine is not theirs:
            break
        level += 1
    return level


def _at_level(account: Account, level: int) -> Account:
    return account.ancestors[level] if level < len(account.ancestors) else account
