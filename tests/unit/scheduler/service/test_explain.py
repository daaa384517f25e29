"""Explaining a PodGroup that waits: a test per condition, each on a cluster made so that the answer is known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from volcano.api import core, scheduling
from volcano.api.decode import decode_object
from volcano.api.jobs.explanation import Explanation
from volcano.api.jobs.why import Why, encode_why
from volcano.app.job_expansion import expand_job
from volcano.scheduler.actions import ACTIONS
from volcano.scheduler.cache import CacheSettings
from volcano.scheduler.framework.config import default_config
from volcano.scheduler.service.registry import load_registry
from volcano.scheduler.service.simulate import Known, simulate

GPU = "nvidia.com/gpu"


def a_node(name: str, labels: Mapping[str, str] | None = None, taints: Iterable[Any] = (), **more: str) -> core.Node:
    amounts = {"cpu": "8", "memory": "32Gi", "pods": "110", **more}
    body = {
        "metadata": {"name": name, "labels": dict(labels or {})},
        "spec": {"taints": list(taints)},
        "status": {"allocatable": amounts, "capacity": amounts},
    }
    return decode_object(core.Node, body)


def a_queue(name: str = "default", state: str = "Open", **spec: Any) -> scheduling.Queue:
    return decode_object(scheduling.Queue, {"metadata": {"name": name}, "spec": spec, "status": {"state": state}})


def a_pod(name: str, group: str, node: str = "", **requests: str) -> core.Pod:
    annotations = {"scheduling.k8s.io/group-name": group, "volcano.sh/task-spec": "worker"}
    body = {
        "metadata": {"name": name, "namespace": "default", "uid": name, "annotations": annotations},
        "spec": {
            "containers": [{"name": "c", "resources": {"requests": requests}}],
            "nodeName": node,
            "schedulerName": "volcano",
        },
        "status": {"phase": "Running" if node else "Pending"},
    }
    return decode_object(core.Pod, body)


def a_group(
    name: str = "demo",
    phase: str = "Inqueue",
    queue: str = "default",
    *,
    least: int = 2,
    why: Why | None = None,
    created: str = "2026-01-01T00:00:00Z",
    **spec: Any,
) -> scheduling.PodGroup:
    body = {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": name,
            "creationTimestamp": created,
            "annotations": {"scheduling.volcano.sh/why": encode_why(why)} if why else {},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Job", "name": name, "uid": f"{name}-uid"}],
        },
        "spec": {"minMember": least, "queue": queue, **spec},
        "status": {"phase": phase},
    }
    return decode_object(scheduling.PodGroup, body)


def a_job(replicas: int = 2, spec: Mapping[str, Any] | None = None, **requests: str) -> dict[str, Any]:
    container = {"name": "c", "resources": {"requests": requests or {"cpu": "1"}}}
    task = {"name": "worker", "replicas": replicas, "template": {"spec": {"containers": [container], **(spec or {})}}}
    return {"metadata": {"name": "demo"}, "spec": {"minAvailable": replicas, "tasks": [task]}}


def explained(
    job: dict[str, Any] | None,
    group: scheduling.PodGroup,
    *,
    nodes: Iterable[core.Node] = (),
    pods: Iterable[core.Pod] = (),
    queues: Iterable[scheduling.Queue] | None = None,
    groups: Iterable[scheduling.PodGroup] = (),
) -> Explanation:
    known = Known(
        settings=CacheSettings(),
        expand_job=expand_job,
        objects={
            core.Node: list(nodes),
            scheduling.Queue: [a_queue()] if queues is None else list(queues),
            scheduling.PodGroup: [group, *groups],
            core.PriorityClass: [decode_object(core.PriorityClass, {"metadata": {"name": "high"}, "value": 100})],
            core.Pod: list(pods),
        },
        config=default_config(ACTIONS),
        registry=load_registry(),
        now=datetime(2026, 1, 1, tzinfo=UTC),
    )
    question = {"podGroup": str(group.key)} | ({"job": job} if job is not None else {})
    found = simulate(known, question).jobs[str(group.key)].explanation
    assert found is not None
    return found


# -- the queue --------------------------------------------------------------------------------------------------------
def test_a_queue_that_does_not_exist():
    found = explained(a_job(), a_group(phase="Pending", queue="nope"), nodes=[a_node("n")])

    assert found.reason is not None
    assert (found.reason.stage, found.reason.message) == ("queue", "there is no queue nope")
    assert not found.never_because


def test_a_closed_queue():
    found = explained(a_job(), a_group(phase="Pending"), nodes=[a_node("n")], queues=[a_queue(state="Closed")])

    assert found.reason is not None
    assert (found.reason.stage, found.reason.message) == ("queue", "queue default is Closed")


def test_not_enqueued_says_what_the_queue_holds_and_which_jobs_hold_it():
    why = Why("enqueue", "overcommit", plugin="proportion", message=f"needs 8 {GPU}")
    found = explained(
        a_job(1, **{GPU: "8"}),
        a_group(phase="Pending", queue="ml", least=1, minResources={GPU: "8"}, why=why),
        nodes=[a_node("n", **{GPU: "16"})],
        queues=[a_queue("ml", capability={GPU: "12"})],
        groups=[a_group("a", "Running", "ml", least=1), a_group("b", "Running", "ml", least=1)],
        pods=[a_pod("a-0", "a", "n", **{GPU: "4"}), a_pod("b-0", "b", "n", **{GPU: "5"})],
    )

    assert found.reason is not None
    assert found.reason.message == f"needs 8 {GPU}; queue ml has 3 of 12 free {GPU}, held by a and b"


def test_more_than_the_queue_may_ever_have_never_runs():
    queue = a_queue(capability={"cpu": "4"})
    why = Why("quota", "capability", plugin="capacity", message="over capability")

    found = explained(a_job(8), a_group(least=8, why=why), nodes=[a_node("n", cpu="64")], queues=[queue])

    assert found.never_because == "it needs 8 cpu at once; queue default may never have more than 4"


def test_a_limit_of_an_ancestor_counts_too():
    queues = [a_queue("root"), a_queue("top", capability={"cpu": "4"}), a_queue("leaf", parent="top")]
    group = a_group(queue="leaf", least=8, why=Why("quota", "x"))

    found = explained(a_job(8), group, nodes=[a_node("n", cpu="64")], queues=queues)

    assert "queue top may never have more than 4" in found.never_because


def test_the_position_in_the_queue_follows_the_schedulers_own_order():
    groups = [
        a_group("old", "Pending", created="2025-01-01T00:00:00Z"),
        a_group("urgent", "Pending", created="2026-06-01T00:00:00Z", priorityClassName="high"),
        a_group("young", "Pending", created="2026-06-01T00:00:00Z"),
        a_group("runs", "Running"),
    ]

    found = explained(a_job(), a_group(phase="Pending"), groups=groups, nodes=[a_node("n")])

    assert found.queue is not None
    assert (found.queue.position, found.queue.waiting, found.queue.ahead) == (3, 4, ["urgent", "old"])


# -- nodes ------------------------------------------------------------------------------------------------------------
def test_the_nodes_left_after_each_condition_are_counted():
    nodes = [a_node(f"plain-{i}") for i in range(600)]
    nodes += [a_node(f"labelled-{i}", {"pool": "gpu"}) for i in range(388)]
    nodes += [a_node(f"gpu-{i}", {"pool": "gpu"}, **{GPU: "8"}) for i in range(12)]
    others = [a_pod(f"o-{i}", "other", f"gpu-{i}", **{GPU: "1"}) for i in range(12)]
    job, group = a_job(1, {"nodeSelector": {"pool": "gpu"}}, **{GPU: "8"}), a_group(least=1, why=Why("fit", "x"))

    found = explained(job, group, nodes=nodes, pods=others, groups=[a_group("other", "Running")])

    (task,) = found.tasks
    assert str(task) == "1000 nodes → 400 match the selector and affinity → 12 have 8 nvidia.com/gpu → 0 have it free"
    assert task.stages[-1].causes == {f"Insufficient {GPU}": 12}
    assert not found.never_because


def test_a_selector_that_matches_no_node_never_runs():
    job = a_job(spec={"nodeSelector": {"zone": "mars"}})

    found = explained(job, a_group(why=Why("fit", "affinity")), nodes=[a_node("n")])

    assert "no node would do even if all were free" in found.never_because


def test_a_pod_larger_than_every_node_never_runs():
    found = explained(a_job(cpu="100"), a_group(why=Why("fit", "Insufficient")), nodes=[a_node("n")])

    assert "1 node → 0 have 100 cpu" in found.never_because


def test_a_gang_larger_than_the_whole_cluster_never_runs():
    found = explained(a_job(20), a_group(least=20, why=Why("gang", "x")), nodes=[a_node("a"), a_node("b")])

    assert found.never_because == "task worker needs 20 pods at once, all suitable nodes together hold 16"


def test_a_gang_that_only_waits_for_others_runs_later():
    others = [a_pod("o-a", "other", "a", cpu="7"), a_pod("o-b", "other", "b", cpu="7")]
    group = a_group(least=8, why=Why("gang", "NotEnough", message="2 of 8 tasks fit"))

    found = explained(
        a_job(8), group, nodes=[a_node("a"), a_node("b")], pods=others, groups=[a_group("other", "Running")]
    )

    assert not found.never_because
    assert (found.tasks[0].fits_now, found.tasks[0].holds) == (2, 16)


def test_nodes_with_untolerated_taints_are_counted_by_taint():
    taint = {"key": "dedicated", "value": "x", "effect": "NoSchedule"}
    sick = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    nodes = [a_node("a", taints=[taint]), a_node("b", taints=[sick]), a_node("c")]

    found = explained(a_job(), a_group(why=Why("fit", "x")), nodes=nodes)

    stage = found.tasks[0].stages[1]
    by_taint = {"untolerated taint dedicated": 1, "untolerated taint node.kubernetes.io/not-ready": 1}
    assert (stage.nodes, stage.causes) == (1, by_taint)
    tolerant = a_job(spec={"tolerations": [{"key": "dedicated", "operator": "Exists"}]})
    assert explained(tolerant, a_group(why=Why("fit", "x")), nodes=nodes).tasks[0].stages[1].nodes == 2


def test_pods_that_wait_are_explained_without_their_job():
    waiting = [a_pod("demo-0", "demo", cpu="100"), a_pod("demo-1", "demo", cpu="100")]

    found = explained(None, a_group(), nodes=[a_node("n")], pods=waiting)

    (task,) = found.tasks
    assert (task.task, task.pending, task.first_empty) == ("worker", 2, task.stages[1])
    assert found.reason is not None and found.reason.stage == "quota"


def test_a_sidecar_counts_as_the_scheduler_counts_it():
    sidecar = {"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "8"}}}
    job = a_job(1, {"initContainers": [sidecar]})

    found = explained(job, a_group(least=1, why=Why("fit", "x")), nodes=[a_node("n")])

    assert "have 9 cpu" in str(found.tasks[0])
    assert "no node would do" in found.never_because


def test_a_gang_that_needs_a_task_which_waits_for_the_gang_never_runs():
    job = a_job(1)
    job["spec"]["tasks"].append({**job["spec"]["tasks"][0], "name": "second", "dependsOn": {"name": ["worker"]}})

    found = explained(job, a_group(why=Why("gang", "NotEnoughPods", message="not enough pods")), nodes=[a_node("n1")])

    assert "minAvailable 2 needs second (after worker) from the start" in found.never_because


def test_a_recorded_bind_failure_is_the_reason():
    why = Why("bind", "BindFailed", message="binding to n failed: conflict")

    found = explained(a_job(), a_group(why=why), nodes=[a_node("n")])

    assert found.reason == why
