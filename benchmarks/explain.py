"""How long an explanation takes on a large cluster: 5,000 nodes, 10,000 waiting pods, 20,000 running ones.

python benchmarks/explain.py [NODES] [WAITING]   prints milliseconds of processor time, the median
                                                of five questions of each kind
"""

from __future__ import annotations

import statistics
import sys
import time
from datetime import UTC, datetime
from typing import Any

from volcano.api import core, scheduling
from volcano.api.decode import decode_object
from volcano.app.job_expansion import expand_job
from volcano.scheduler.actions import ACTIONS
from volcano.scheduler.cache import Batch, Cache, CacheSettings
from volcano.scheduler.explain.questions_asked import read_question
from volcano.scheduler.explain.trials import TrialRules
from volcano.scheduler.framework.config import default_config
from volcano.scheduler.loop import cycle
from volcano.scheduler.model import SeededChance
from volcano.scheduler.service.explaining import Expander, answered

NOW = datetime(2026, 1, 1, tzinfo=UTC)
GROUP, ROLE, JOB = "scheduling.k8s.io/group-name", "volcano.sh/task-spec", "volcano.sh/job-name"
TASKS_PER_JOB = 10
RUNNING_PER_NODE = 4
ROUNDS = 5


def objects(nodes: int, waiting: int) -> dict[tuple[type, Any], Any]:
    """Full nodes of 32 cpus, and jobs of ten pods that wait; some of them for what no waiting gives."""
    found: list[Any] = [decode_object(scheduling.Queue, {"metadata": {"name": "default"}, "status": {"state": "Open"}})]
    amounts = {"cpu": "32", "memory": "256Gi", "pods": "110"}
    for number in range(nodes):
        labels = {"kubernetes.io/hostname": f"n{number}", "zone": f"z{number % 10}"}
        body = {
            "metadata": {"name": f"n{number}", "labels": labels},
            "status": {"allocatable": amounts, "capacity": amounts},
        }
        found.append(decode_object(core.Node, body))
        names = [f"r-{number}-{place}" for place in range(RUNNING_PER_NODE)]
        found += [pod(name, "running", "7", f"n{number}") for name in names]
    found.append(group("running", 1, "Running"))
    for number in range(waiting // TASKS_PER_JOB):
        name = f"w{number}"
        found.append(group(f"{name}-group", TASKS_PER_JOB, "Inqueue", name))
        found += [pod(f"{name}-worker-{i}", f"{name}-group", "8", job=name) for i in range(TASKS_PER_JOB)]
    return {(type(each), each.key): each for each in found}


def pod(name: str, group_name: str, cpu: str, node: str = "", job: str = "") -> core.Pod:
    metadata = {
        "name": name,
        "namespace": "default",
        "uid": name,
        "annotations": {GROUP: group_name, ROLE: "worker", JOB: job},
    }
    container = {"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    spec = {"containers": [container], "nodeName": node, "schedulerName": "volcano"}
    body = {"metadata": metadata, "spec": spec, "status": {"phase": "Running" if node else "Pending"}}
    return decode_object(core.Pod, body)


def group(name: str, least: int, phase: str, owner: str = "") -> scheduling.PodGroup:
    owners = (
        [{"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": owner, "uid": f"u-{owner}"}]
        if owner
        else []
    )
    body = {
        "metadata": {"name": name, "namespace": "default", "uid": name, "ownerReferences": owners},
        "spec": {"minMember": least, "queue": "default"},
        "status": {"phase": phase},
    }
    return decode_object(scheduling.PodGroup, body)


def a_job(name: str, cpu: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    task = {"name": "worker", "replicas": TASKS_PER_JOB, "template": {"spec": {"containers": [container], **spec}}}
    return {
        "metadata": {"name": name, "namespace": "default", "uid": f"u-{name}"},
        "spec": {"minAvailable": TASKS_PER_JOB, "queue": "default", "schedulerName": "volcano", "tasks": [task]},
    }


def milliseconds(work: Any) -> float:
    begun = time.process_time()
    work()
    return (time.process_time() - begun) * 1000.0


def main() -> None:
    nodes = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    waiting = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000
    batch = objects(nodes, waiting)
    pods = [each for each in batch.values() if isinstance(each, core.Pod) and each.namespace == "default"]
    snapshot = Cache(CacheSettings()).refresh(Batch(dict(batch)), NOW, "benchmark")
    rules = TrialRules(default_config(ACTIONS))
    expander = Expander(expand_job, [], CacheSettings(), NOW)

    def ask(name: str, body: dict[str, Any], *, changes: bool) -> str:
        question = read_question({"kind": "vcjob", "name": name, "object": body, "changes": changes})
        return answered(question, snapshot, rules, pods, expander, NOW).text

    whole = milliseconds(lambda: cycle(snapshot, rules.config, SeededChance(0)))
    print(f"{nodes} nodes, {waiting} waiting pods, {len(pods) - waiting} running; one cycle {whole:.0f} ms")
    cases = {
        "waits its turn": ("w3", a_job("w3", "8")),
        "never: too large": ("x4", a_job("x4", "64")),
        "never: no such label": ("x5", a_job("x5", "8", nodeSelector={"zone": "z99"})),
    }
    for title, (name, body) in cases.items():
        for changes in (False, True):
            times = [milliseconds(lambda n=name, b=body, c=changes: ask(n, b, changes=c)) for _ in range(ROUNDS)]
            print(f"{title:22} {'with changes' if changes else 'reason only':13} {statistics.median(times):8.0f} ms")
        print(f"  {ask(name, body, changes=False)}")


if __name__ == "__main__":
    main()
