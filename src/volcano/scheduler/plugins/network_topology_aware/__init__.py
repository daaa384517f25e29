"""network-topology-aware: gangs are placed close together in the tree of HyperNodes, other pods where it is busy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from volcano.scheduler.core.node_table import Column, Mask, Rows
from volcano.scheduler.core.node_view import NodeView
from volcano.scheduler.framework.answers import BatchScore
from volcano.scheduler.framework.config import PluginOption
from volcano.scheduler.framework.plugin import Plugin
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import CPU, MEMORY, Domain, Job, Resources, Status, SubJob, Task
from volcano.scheduler.model.resources import total
from volcano.scheduler.plugins.network_topology_aware.gradients import below, by_tier, search_root, widest_first
from volcano.scheduler.plugins.network_topology_aware.loads import Loads

FULL: Final = 100.0
EVICT: Final = "Evict"


class NetworkTopologyAware(Plugin):
    name = "network-topology-aware"
    argument_names = frozenset(
        {
            "weight",
            "hypernode.binpack.cpu",
            "hypernode.binpack.memory",
            "hypernode.binpack.resources",
            "hypernode.binpack.normal-pod.enable",
            "hypernode.binpack.normal-pod.fading",
            "hypernode.gradient.evict.max-hypernodes",
        }
    )
    argument_prefixes = ("hypernode.binpack.resources.",)

    def __init__(self, option: PluginOption) -> None:
        super().__init__(option)
        arguments = option.arguments

        def weight(key: str) -> int:
            stated = arguments.integer(key, 1)
            return stated if stated >= 0 else 1

        self._scale = FULL * weight("weight")
        listed = arguments.text("hypernode.binpack.resources", "").split(",")
        names = [name.strip() for name in listed if name.strip()]
        self._weights = {name: weight(f"hypernode.binpack.resources.{name}") for name in names}
        self._weights |= {CPU: weight("hypernode.binpack.cpu"), MEMORY: weight("hypernode.binpack.memory")}
        self._packs_others = arguments.flag("hypernode.binpack.normal-pod.enable", True)
        fading = arguments.number("hypernode.binpack.normal-pod.fading", 0.8)
        self._fading = fading if fading >= 0.0 else 0.8
        most = arguments.integer("hypernode.gradient.evict.max-hypernodes", 8)
        self._most_evicted = most if most > 0 else 8

    def open(self, session: Session) -> None:
        super().open(session)
        self._columns = session.domain_columns
        self._loads = Loads(self._columns, session.table)
        self._packed: dict[int, tuple[int, Column]] = {}  # by shape: of which load, and the score of every node
        self._closeness: dict[str, Column] = {}  # by domain: how close every other one is
        self._requests: dict[str, Resources] = {}  # by sub-job: of all its tasks
        self._waiting: dict[str, Resources] = {}  # by sub-job: of those still to be placed
        self._siblings: dict[str, Rows] = {}  # by sub-job: how many of its tasks are in each domain

    # -- which domains -------------------------------------------------------------------------------------------------
    def domain_gradient_for_job(self, job: Job, within: Domain, purpose: str) -> list[list[Domain]]:
        return self._gradient(job, job.min_resources or Resources(), within, purpose)

    def domain_gradient_for_sub_job(self, sub_job: SubJob, within: Domain, purpose: str) -> list[list[Domain]]:
        waiting = self._waiting.get(sub_job.id)
        if waiting is None:
            pending = (task.request for task in sub_job.tasks.values() if task.status == Status.PENDING)
            waiting = self._waiting[sub_job.id] = total(pending)
        return self._gradient(sub_job, waiting, within, purpose)

    def _gradient(self, owner: Job | SubJob, least: Resources, within: Domain, purpose: str) -> list[list[Domain]]:
        topology, domains, columns = owner.topology, self.session.domains, self._columns
        if topology is None or not topology.is_hard or topology.highest_tier is None:
            return [[within]]
        top = search_root(domains, owner.allocated_domain, topology.highest_tier, within)
        if top is None:
            return []
        chosen = below(domains, columns, top) & (columns.tiers <= topology.highest_tier) & (columns.sizes > 0)
        if not owner.allocated_domain:
            chosen &= self._loads.could_offer(least) if purpose == EVICT else self._loads.offers(least)
        found = by_tier(columns, chosen)
        return widest_first(found, self._most_evicted) if purpose == EVICT else found

    def domain_score(self, sub_job: SubJob, domains: Sequence[Domain]) -> dict[str, float]:
        """How full the whole sub-job would make each; of the fullest, the one that holds more of it already."""
        places = np.array([self._columns.place[domain.name] for domain in domains], dtype=np.intp)
        full = self._loads.fullness(self._request_of(sub_job), self._weights)[places]
        full = _told_apart(full, lambda: self._held(sub_job)[places])
        return {domain.name: float(score) for domain, score in zip(domains, full * self._scale, strict=True)}

    # -- which nodes ---------------------------------------------------------------------------------------------------
    def batch_node_score(self, task: Task, nodes: NodeView) -> BatchScore:
        return BatchScore(nodes.zeros(), live=self._score)

    def _score(self, task: Task, candidates: Mask) -> Column:
        job = self.session.jobs.get(task.job_id)
        sub_job = job.sub_jobs.get(task.sub_job_id) if job is not None else None
        if sub_job is None or (sub_job.topology is not None and not task.allocated_domain):
            return np.zeros(len(candidates))
        if sub_job.topology is None:
            return self._busyness(task)
        close = self._close_to(task.allocated_domain)[self._columns.lowest]
        rows = np.flatnonzero(candidates & self._in_lowest_tier())
        score = np.zeros(len(candidates))
        score[rows] = _told_apart(close[rows], lambda: self._held(sub_job)[self._columns.lowest[rows]]) * self._scale
        return score

    def _in_lowest_tier(self) -> Mask:
        """Nodes that lie in a domain of the lowest tier; the others get neither a score nor a bonus."""
        tiers: Mask = self._columns.tiers[self._columns.lowest] == self.session.domains.tiers[0]
        return tiers

    def _close_to(self, place: str) -> Column:
        """1 for the domain itself; less, the higher the tier where the way to another one meets the way to it."""
        kept = self._closeness.get(place)
        if kept is None:
            domains, tiers = self.session.domains, self.session.domains.tiers
            lowest, highest = tiers[0], tiers[-1]
            kept = np.zeros(len(self._columns.domains))
            for at, domain in enumerate(self._columns.domains):
                common = domains.common(domain.name, place)
                tier = domains.by_name[common].tier if common else highest
                kept[at] = 1.0 if highest == lowest or domain.name == place else (highest - tier) / (highest - lowest)
            self._closeness[place] = kept
        return kept

    def _busyness(self, task: Task) -> Column:
        """How full the task would make the domains each node lies in; higher tiers count less."""
        if not self._packs_others:
            return np.zeros(len(self.session.table))
        kept = self._packed.get(task.shape.number)
        if kept is None or kept[0] != self._loads.version:
            full = np.append(self._loads.fullness(task.request, self._weights), 1.0)  # the last: lies in none
            homes = self._columns.homes
            score, weights = np.zeros(len(self.session.table)), 0.0
            for tier in range(min(homes), max(homes) + 1):
                weight = self._fading ** max(tier - 1, 0)
                weights += weight
                score += weight * (full[homes[tier]] if tier in homes else 1.0)
            kept = self._packed[task.shape.number] = self._loads.version, score / weights * self._scale
        return kept[1]

    # -- what of a sub-job is where ------------------------------------------------------------------------------------
    def _request_of(self, sub_job: SubJob) -> Resources:
        kept = self._requests.get(sub_job.id)
        if kept is None:
            kept = self._requests[sub_job.id] = total(task.request for task in sub_job.tasks.values())
        return kept

    def _held(self, sub_job: SubJob) -> Column:
        """Which part of the sub-job's tasks lies in each domain."""
        counts = self._siblings.get(sub_job.id)
        if counts is None:
            counts = self._siblings[sub_job.id] = np.zeros(len(self._columns.domains), dtype=np.intp)
            for task in sub_job.tasks.values():
                self._count(counts, task, 1)
        return counts / max(len(sub_job.tasks), 1)

    def _count(self, counts: Rows, task: Task, by: int) -> None:
        row = self.session.table.index.get(task.node)
        if row is not None:
            counts[self._columns.places_of(row)] += by

    # -- what happened -------------------------------------------------------------------------------------------------
    def on_allocate(self, task: Task) -> None:
        self._loads.change(task, 1.0)
        if task.status in (Status.ALLOCATED, Status.PIPELINED):
            if task.sub_job_id in self._siblings:
                self._count(self._siblings[task.sub_job_id], task, 1)
            if task.sub_job_id in self._waiting:
                self._waiting[task.sub_job_id].withdraw(task.request)

    def on_deallocate(self, task: Task) -> None:
        """An evicted task still has its node; a placed one already has it."""
        self._loads.change(task, -1.0)
        if task.status == Status.PENDING:
            if task.sub_job_id in self._siblings:
                self._count(self._siblings[task.sub_job_id], task, -1)
            if task.sub_job_id in self._waiting:
                self._waiting[task.sub_job_id].add(task.request)


def _told_apart(scores: Column, bonus: Callable[[], Column]) -> Column:
    """The highest scores, if several are equal, with a bonus each."""
    if not len(scores):
        return scores
    foremost = scores == scores.max()
    return np.where(foremost, scores + bonus(), scores) if foremost.sum() > 1 else scores
