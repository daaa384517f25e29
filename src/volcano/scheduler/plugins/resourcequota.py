"""resourcequota: a job enters its queue only if its minimum stays within the quotas of its namespace."""

from __future__ import annotations

from collections import defaultdict

from volcano.api.core import ResourceQuota
from volcano.api.jobs.why import QUOTA, Why
from volcano.api.meta import Quantities
from volcano.api.quantity import NANO, Quantity, QuantityError, parse_quantity
from volcano.scheduler.framework.answers import Vote
from volcano.scheduler.framework.plugin import Plugin
from volcano.scheduler.framework.record import Note
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import Job


class ResourceQuotas(Plugin):
    name = "resourcequota"
    argument_names = frozenset()

    def open(self, session: Session) -> None:
        super().open(session)
        self._pending: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))  # let in by this session

    def job_enqueueable(self, job: Job) -> Vote:
        asked = _amounts(job.group.spec.min_resources if job.group else None)
        for key, quota in sorted(self.session.snapshot.cluster.resource_quotas.items()):
            if key.namespace == job.namespace:
                refusal = self._exceeded(job, asked, quota)
                if refusal:
                    self.session.record.notes.append(Note(job.id, "Unschedulable", refusal))
                    self.session.record.refuse(job.id, Why(QUOTA, "resource quota insufficient", self.name, refusal))
                    return Vote.REJECT
        return Vote.PERMIT

    def _exceeded(self, job: Job, asked: dict[str, int], quota: ResourceQuota) -> str:
        hard, used = _amounts(quota.status.hard), _amounts(quota.status.used)
        pending = self._pending[job.namespace]
        over = [
            name
            for name, amount in asked.items()
            if name in hard and used.get(name, 0) + pending.get(name, 0) + amount > hard[name]
        ]
        if not over:
            return ""
        requested, taken, limited = (_text(amounts, over) for amounts in (asked, used, hard))
        return f"resource quota insufficient, requested: {requested}, used: {taken}, limited: {limited}"

    def job_enqueued(self, job: Job) -> None:
        for name, amount in _amounts(job.group.spec.min_resources if job.group else None).items():
            self._pending[job.namespace][name] += amount


def _amounts(quantities: Quantities | None) -> dict[str, int]:
    """Exact nano-units; what cannot be read is left out, for the API server would have refused it."""
    amounts = {}
    for name, text in (quantities or {}).items():
        try:
            amounts[name] = parse_quantity(text).nanos
        except QuantityError:
            continue
    return amounts


def _text(amounts: dict[str, int], names: list[str]) -> str:
    return ",".join(f"{name}={Quantity(amounts.get(name, 0 * NANO))}" for name in sorted(names))
