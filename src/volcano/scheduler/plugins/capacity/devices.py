"""Quotas of devices that pods claim (dynamic resource allocation): by device class, in numbers and in shared capacity.

A queue states them in its capability as `deviceclass/CLASS` and `DIMENSION.deviceclass/CLASS`. A claim that several
pods share is charged once to a queue.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from volcano.api.core import ResourceClaim
from volcano.api.meta import Key
from volcano.api.quantity import QuantityError, parse_quantity
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import Job, Resources, Task
from volcano.scheduler.model.status import ALLOCATED

MARK: Final = "deviceclass/"
EXCEEDED: Final = "dra-resource-exceeded"

Demand = Counter[str]
"""Amounts by the names quotas have."""


@dataclass(slots=True)
class DeviceAccount:
    """Of one queue: what it may have, what its pods' claims come to, and what jobs let in still wait for."""

    limits: dict[str, float]
    claims: Counter[str] = field(default_factory=Counter)  # how many pods use each
    held: Demand = field(default_factory=Counter)
    inqueue: Demand = field(default_factory=Counter)

    def takes(self, asked: Demand, *, entering: bool = False) -> bool:
        """Whether it may have this much more. A class that is not named is not limited."""
        for name, amount in asked.items():
            dimension, mark, kind = name.partition(MARK)
            limit = self.limits.get(name)
            if limit is None and dimension:
                limit = 0.0 if f"{mark}{kind}" in self.limits or self._speaks_of(kind) else None
            if limit is None or (not dimension and limit <= 0.0):
                continue
            if self.held[name] + (self.inqueue[name] if entering else 0) + amount > limit:
                return False
        return True

    def _speaks_of(self, kind: str) -> bool:
        return any(name.endswith(f".{MARK}{kind}") for name in self.limits)


class Devices:
    """All queues' accounts during a session."""

    def __init__(self, session: Session, *, counts_capacity: bool) -> None:
        self._claims = session.snapshot.cluster.resource_claims
        self._counts_capacity = counts_capacity
        self._demands: dict[str, Demand] = {}
        self.accounts = {
            name: DeviceAccount(_limits(queue.capability))
            for name, queue in session.queues.items()
            if any(
                MARK in key for amount in (queue.capability, queue.deserved, queue.guarantee) for key in amount or ()
            )
        }

    def __bool__(self) -> bool:
        return bool(self.accounts) and bool(self._claims)

    def open(self, session: Session, lines: Mapping[str, list[str]]) -> None:
        """Charge what runs; `lines`: each queue with its ancestors."""
        for job in session.jobs.values():
            for status in ALLOCATED:
                for task in job.by_status[status].values():
                    if task.claims:
                        self.charge(task, lines.get(job.queue, ()))

    # -- what pods ask for ---------------------------------------------------------------------------------------------
    def _demand(self, claim: str) -> Demand:
        if claim not in self._demands:
            namespace, _, name = claim.partition("/")
            self._demands[claim] = demand_of(self._claims.get(Key(namespace, name)), capacity=self._counts_capacity)
        return self._demands[claim]

    def _asked(self, tasks: Iterable[Task], account: DeviceAccount) -> Demand:
        """Of claims that the queue does not use yet."""
        asked: Demand = Counter()
        for claim in {claim for task in tasks for claim in task.claims}:
            if not account.claims[claim]:
                asked.update(self._demand(claim))
        return asked

    def allow(self, task: Task, line: Iterable[str]) -> bool:
        if not task.claims:
            return True
        members = [self.accounts[name] for name in line if name in self.accounts]
        return all(member.takes(self._asked([task], member)) for member in members)

    # -- jobs that want to enter ---------------------------------------------------------------------------------------
    def least_of(self, job: Job) -> Demand:
        """What a job's minimum comes to: of each role as many as it needs, or of the first tasks."""
        least: Demand = Counter()
        claiming = sorted((t for t in job.tasks.values() if t.claims), key=lambda t: (t.namespace, t.name, t.uid))
        if any(job.role_minimums.values()):
            for role, count in job.role_minimums.items():
                one = next((task for task in claiming if task.role == role), None)
                for claim in one.claims if one is not None else ():
                    least.update({name: amount * count for name, amount in self._demand(claim).items()})
        else:
            for task in claiming[: max(job.min_available, 0)]:
                for claim in task.claims:
                    least.update(self._demand(claim))
        return least

    def allow_entry(self, least: Demand, line: Iterable[str]) -> str | None:
        """The queue that has not so much left for another job; None when all have."""
        members = ((name, self.accounts[name]) for name in line if name in self.accounts)
        return next((name for name, account in members if not account.takes(least, entering=True)), None)

    def entered(self, least: Demand, line: Iterable[str]) -> None:
        for name in line:
            if name in self.accounts:
                self.accounts[name].inqueue.update(least)

    # -- what happens ----------------------------------------------------------------------------------------------
    def charge(self, task: Task, line: Iterable[str]) -> None:
        for name in line:
            account = self.accounts.get(name)
            for claim in task.claims if account is not None else ():
                assert account is not None
                account.claims[claim] += 1
                if account.claims[claim] == 1:
                    account.held.update(self._demand(claim))

    def credit(self, task: Task, line: Iterable[str]) -> None:
        for name in line:
            account = self.accounts.get(name)
            for claim in task.claims if account is not None else ():
                assert account is not None
                account.claims[claim] -= 1
                if account.claims[claim] == 0:
                    account.held = Counter({k: max(v - self._demand(claim)[k], 0) for k, v in account.held.items()})

    def told(self) -> dict[str, Resources]:
        """For the queues' status, in thousandths like every other amount."""
        return {
            name: Resources({key: amount * 1000.0 for key, amount in account.held.items() if amount})
            for name, account in self.accounts.items()
        }


def demand_of(claim: ResourceClaim | None, *, capacity: bool) -> Demand:
    """What a claim's exact requests come to; alternatives and "all" are not counted."""
    found: Demand = Counter()
    devices = (claim.spec or {}).get("devices") if claim is not None else None
    for request in (devices or {}).get("requests") or ():
        exactly = request.get("exactly") if isinstance(request, dict) else None
        if not isinstance(exactly, dict) or exactly.get("allocationMode") == "All":
            continue
        kind, count = f"{MARK}{exactly.get('deviceClassName', '')}", _whole(exactly.get("count")) or 1
        found[kind] += count
        asked = (exactly.get("capacity") or {}).get("requests") if capacity else None
        for dimension, amount in (asked or {}).items():
            found[f"{dimension}.{kind}"] += _whole(amount) * count
    return found


def _limits(capability: Resources | None) -> dict[str, float]:
    amounts = capability.amounts if capability is not None else {}
    return {name: amount / 1000.0 for name, amount in amounts.items() if MARK in name}


def _whole(value: Any) -> int:
    try:
        return parse_quantity(value).value if value is not None else 0
    except (QuantityError, TypeError):
        return 0
