"""What planning ahead costs: `python benchmarks/time_planning.py`, in seconds of CPU time.

First a cycle on a full cluster of 5,000 nodes with 10,000 waiting pods, with the plugin `easy` and without it; then
the expected starts of 1,000 jobs that wait for 1,000 nodes.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

from volcano.api import core, scheduling
from volcano.api.meta import ObjectMeta, Resource
from volcano.scheduler.actions import ACTIONS
from volcano.scheduler.cache import Batch, Cache, CacheSettings
from volcano.scheduler.framework.config import SchedulerConfig, parse_config
from volcano.scheduler.loop import cycle
from volcano.scheduler.model import SeededChance
from volcano.scheduler.service.expected_starts import PlaybackBudget, expected_starts
from volcano.scheduler.service.registry import Registry
from volcano.scheduler.service.simulate import Known

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TIERS = """
actions: "enqueue, allocate"
tiers:
- plugins:
{easy}  - name: priority
  - name: gang
  - name: predicates
  - name: nodeorder
"""


def config(*, easy: bool) -> SchedulerConfig:
    text = TIERS.format(easy="  - name: easy\n    arguments: {easy.scope: cluster}\n" if easy else "")
    return parse_config(text, known_actions=ACTIONS)


def objects(nodes: int, waiting: int, size: int) -> dict[type[Resource], list[Any]]:
    """Every node runs one pod that fills it; each waiting gang has `size` pods that need a whole node each."""
    has = {"cpu": "4", "memory": "16Gi", "pods": "110"}
    queue = scheduling.Queue(metadata=ObjectMeta(name="default"), status=scheduling.QueueStatus(state="Open"))
    found: dict[type[Resource], list[Any]] = {scheduling.Queue: [queue], core.Node: [], core.Pod: []}
    found[core.Node] = [
        core.Node(metadata=ObjectMeta(name=f"n{index}"), status=core.NodeStatus(allocatable=has, capacity=has))
        for index in range(nodes)
    ]
    groups = found.setdefault(scheduling.PodGroup, [])
    for index in range(nodes):
        groups.append(a_group(f"runs-{index}", 1, "Running", minutes=10 + index % 97))
        found[core.Pod].append(a_pod(f"runs-{index}", 0, f"n{index}"))
    for index in range(waiting):
        groups.append(a_group(f"waits-{index}", size, "Inqueue", minutes=5 + index % 61))
        found[core.Pod] += [a_pod(f"waits-{index}", number) for number in range(size)]
    return found


def a_group(name: str, size: int, phase: str, *, minutes: int) -> scheduling.PodGroup:
    annotations = {"volcano.sh/running-estimate": f"{minutes}m"}
    created = NOW - timedelta(minutes=5)
    meta = ObjectMeta(name=name, namespace="d", uid=name, creation_timestamp=created, annotations=annotations)
    spec = scheduling.PodGroupSpec(min_member=size, queue="default")
    return scheduling.PodGroup(metadata=meta, spec=spec, status=scheduling.PodGroupStatus(phase=phase))


def a_pod(group: str, number: int, node: str = "") -> core.Pod:
    request = core.ResourceRequirements(requests={"cpu": "4", "memory": "1Gi"})
    containers = [core.Container(name="main", resources=request)]
    annotations = {"scheduling.k8s.io/group-name": group}
    name = f"{group}-task-{number}"
    return core.Pod(
        metadata=ObjectMeta(name=name, namespace="d", uid=name, creation_timestamp=NOW, annotations=annotations),
        spec=core.PodSpec(containers=containers, scheduler_name="volcano", node_name=node),
        status=core.PodStatus(phase="Running" if node else "Pending", start_time=NOW if node else None),
    )


def cycle_seconds(found: dict[type[Resource], list[Any]], *, easy: bool) -> float:
    batch = Batch({(kind, item.key): item for kind, items in found.items() for item in items}, {}, frozenset())
    snapshot = Cache(CacheSettings()).refresh(batch, NOW, "benchmark")
    times = []
    for _ in range(3):
        begun = time.process_time()
        cycle(snapshot, config(easy=easy), SeededChance(0))
        times.append(time.process_time() - begun)
    return min(times)


def main() -> None:
    large = objects(5000, 1000, 10)
    plain, planned = cycle_seconds(large, easy=False), cycle_seconds(large, easy=True)
    print(f"5,000 nodes, 10,000 waiting pods, nothing free: {plain:.3f} s, with easy {planned:.3f} s", end="")
    print(f" ({(planned / plain - 1) * 100:+.0f} %)")
    known = Known(
        CacheSettings(),
        objects(1000, 1000, 4),
        config(easy=True),
        Registry(),
        NOW,
        lambda *_, **__: (_ for _ in ()).throw(ValueError),
    )
    begun = time.process_time()
    answer = expected_starts(known, PlaybackBudget().allows)
    shown = sum(each.start is not None for each in answer.jobs.values())
    print(f"1,000 nodes, 1,000 waiting jobs: expected starts of {shown} jobs in {time.process_time() - begun:.2f} s")


if __name__ == "__main__":
    main()
