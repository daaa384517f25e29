"""Binds containers to CPUs: those with CPUs of their own to these, all others to the rest, also while they run.

By cpusets of control groups where there are some. Elsewhere by the affinity of processes, which a program can change.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping

from volcano.api.numa.cpus import format_cpus
from volcano.embedded.agent.containers.container_attempt import ContainerAttempt, split_id
from volcano.embedded.agent.cpus.cpu_pool import CpuPool
from volcano.embedded.agent.grants.grants import Grants
from volcano.embedded.agent.processes.cgroups import Cgroups
from volcano.embedded.agent.processes.container_shim import descendants
from volcano.embedded.agent.processes.supervisor_protocol import ProcessRecord
from volcano.embedded.agent.runtime.process_records import is_live


class CpuBindings:
    """The bindings of one agent's containers; without the policy `static` there are none."""

    def __init__(
        self,
        pool: CpuPool | None,
        grants: Grants,
        cgroups: Cgroups,
        records: Callable[[], Mapping[str, ProcessRecord]],
    ) -> None:
        self._pool = pool if pool is not None and pool.policies.is_static else None
        self._grants, self._cgroups, self._records = grants, cgroups, records
        self._starting: set[str] = set()  # containers that have a group and no record yet

    @property
    def is_static(self) -> bool:
        return self._pool is not None

    def cpuset_of(self, run: ContainerAttempt) -> str:
        """For the container's group; empty where none is made for it."""
        if self._pool is None or not self._cgroups.has_cpusets:
            return ""
        if run.id not in self._records():
            self._starting.add(run.id)
        return format_cpus(self._cpus(run.pod.uid, run.name))

    def affinity_of(self, run: ContainerAttempt) -> tuple[int, ...]:
        if self._pool is None or self._cgroups.has_cpusets:
            return ()
        return tuple(sorted(self._cpus(run.pod.uid, run.name)))

    def started(self, identity: str) -> None:
        """Grants may have changed while the container was being started."""
        self._starting.discard(identity)
        self._bind(identity)

    def ended(self, identity: str) -> None:
        self._starting.discard(identity)

    def refresh(self) -> None:
        """Keep the containers that share CPUs away from those that others have for themselves."""
        if self._pool is not None:
            live = {identity for identity, record in self._records().items() if is_live(record)}
            for identity in live | self._starting:
                self._bind(identity)

    def _bind(self, identity: str) -> None:
        if self._pool is None:
            return
        uid, name, _ = split_id(identity)
        cpus = self._cpus(uid, name)
        if self._cgroups.set_cpus(identity, format_cpus(cpus)):
            return
        record = self._records().get(identity)
        if record is not None and is_live(record) and not self._own(uid, name):
            for process in descendants(record["pid"]):
                _set_affinity(process, cpus)

    def _cpus(self, uid: str, name: str) -> frozenset[int]:
        assert self._pool is not None, "only called with the policy static"
        return self._own(uid, name) or self._pool.shared(self._grants.ledger.held_cpus)

    def _own(self, uid: str, name: str) -> frozenset[int]:
        grant = self._grants.ledger.get(uid)
        return frozenset(grant.of(name).cpus) if grant is not None else frozenset()

    def description(self) -> str:
        """For the node's annotation, once control groups are open."""
        if self._pool is None:
            return "all pods share all CPUs"
        pinned = len(self._pool.machine.ids) - len(self._pool.reserved)
        how = "cpusets" if self._cgroups.has_cpusets else "the affinity of their processes, which programs can change"
        return (
            f"{pinned} of {len(self._pool.machine.ids)} CPUs can be pods' own, by {how}; "
            "other processes of the machine and interrupts are not kept away, and memory is not bound"
        )


def _set_affinity(process: int, cpus: frozenset[int]) -> None:
    with contextlib.suppress(OSError):  # it has just ended
        for thread in os.listdir(f"/proc/{process}/task"):
            with contextlib.suppress(OSError):
                os.sched_setaffinity(int(thread), cpus)
