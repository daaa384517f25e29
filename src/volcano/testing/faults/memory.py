"""What processes keep in memory when nothing happens any more: the truth, and nothing that only grows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from volcano.api.batch import Job
from volcano.api.core import Node, Pod
from volcano.api.kubelet import AgentPod
from volcano.api.meta import Resource
from volcano.api.scheduling import PodGroup, Queue
from volcano.embedded.agent.agent import Agent
from volcano.machinery.runner import Runner
from volcano.machinery.world import Mirror
from volcano.scheduler.service.service import SchedulerService
from volcano.testing.faults.invariants import Observer
from volcano.testing.faults.processes import Process

COMPARED: Final[tuple[type[Resource], ...]] = (Pod, Job, PodGroup, Queue, Node)


def leftovers(processes: Iterable[Process], observer: Observer) -> list[str]:
    """What is not as it must be, in each process that is at work."""
    found = []
    for process in processes:
        part = process.part
        if not process.is_up or process.waits:
            continue
        found += [f"{process.name}: {each}" for each in _of_part(part, observer)]
    return found


def _of_part(part: Any, observer: Observer) -> list[str]:
    found: list[str] = []
    if isinstance(part, Runner):
        found += _mirrored(part.mirror, observer)
        found += [f"the queue of {name} is not idle" for name, queue in part.queues.items() if not queue.is_idle]
    elif isinstance(part, SchedulerService):
        found += _mirrored(part.mirror, observer)
        kept = part.pending.assumptions()
        if kept.assumed or kept.evicting:
            found.append(f"assumes {dict(kept.assumed)} and {sorted(kept.evicting)}")
        if part.sender.unsent_writes:
            found.append(f"{part.sender.unsent_writes} writes are not answered")
        found += _snapshot(part, observer)
    elif isinstance(part, Agent):
        bound = {pod.uid for pod in observer.all(Pod) if pod.spec.node_name}
        found += [f"runs a pod that is gone: {each.pod.key}" for uid, each in part.pods.items() if uid not in bound]
        known = {pod.uid for pod in part.mirror.all(AgentPod)}
        found += [f"keeps a pod that is gone: {uid}" for uid in sorted(known - bound)]
    return found


def _mirrored(mirror: Mirror, observer: Observer) -> list[str]:
    """What a process has seen is what there is; a kind that it does not follow is empty."""
    found = []
    for kind in COMPARED:
        seen = {each.key: each.metadata.resource_version for each in mirror.all(kind)}
        true = {each.key: each.metadata.resource_version for each in observer.all(kind)}
        if seen and seen != true:
            wrong = sorted(str(key) for key in seen.keys() | true.keys() if seen.get(key) != true.get(key))
            found.append(f"sees other {kind.__name__}s than there are: {', '.join(wrong)}")
    return found


def _snapshot(service: SchedulerService, observer: Observer) -> list[str]:
    """Finished pods use nothing; whatever a node still counts as used was forgotten there."""
    found = []
    for node in service.decider.snapshot.table.nodes:
        running = [pod for pod in observer.all(Pod) if pod.spec.node_name == node.name and not pod.is_finished]
        counted = sum(not task.pod.is_finished for task in node.tasks.values())
        if counted != len(running):
            found.append(f"counts {counted} pods on {node.name}, where {len(running)} run")
    return found
