"""From a spec to objects: pods, PodGroup, volumes, minResources, dependencies, scaling, status and its few writes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from volcano.api.batch import Job, Phase
from volcano.api.core import PersistentVolumeClaim, Pod, Service
from volcano.api.scheduling import WHY_ANNOTATION, PodGroup, Queue
from volcano.controllers.job import JobController
from volcano.controllers.job.wakes import WakeCause
from volcano.testing.pure_jobs import JobWorld, a_command, a_job, a_queue, a_task, policy

BOX = {"name": "main", "image": "any"}


def resources(**amounts: str) -> dict[str, str]:
    return {name.replace("gpu", "nvidia.com/gpu"): amount for name, amount in amounts.items()}


def a_template(priority: str = "", metadata: dict[str, Any] | None = None, **amounts: str) -> dict[str, Any]:
    container = {**BOX, "resources": {"requests": resources(**amounts), "limits": resources(**amounts)}}
    spec: dict[str, Any] = {"containers": [container], "restartPolicy": "Never"}
    if priority:
        spec["priorityClassName"] = priority
    return {"spec": spec, **({"metadata": metadata} if metadata else {})}


def submitted(*tasks: dict[str, Any], **more: Any) -> JobWorld:
    world = JobWorld(a_job(*tasks, **more))
    world.settle()
    return world


# -- pods -----------------------------------------------------------------------------------------------------------
def test_no_pod_is_made_before_the_scheduler_lets_the_gang_in() -> None:
    world = submitted()

    before = world.pods()
    world.enqueue()

    assert before == {}
    assert world.pods() == {"j-worker-0": "Pending", "j-worker-1": "Pending"}


def test_very_many_pods_are_made_by_several_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("volcano.controllers.job.pods.MAX_PODS_PER_PLAN", 3)
    world = submitted(a_task(name="a", replicas=5), a_task(name="b", replicas=5))

    world.enqueue()

    assert len(world.pods()) == 10


def test_a_job_of_billions_of_pods_is_left_alone_and_says_so() -> None:
    world = submitted(a_task(replicas=2**31 - 1))

    assert world.pods() == {}
    assert world.reasons() == ["TooManyPods"]


def test_a_pod_carries_what_the_reference_puts_on_it() -> None:
    template = a_template(
        metadata={"labels": {"mine": "yes"}, "annotations": {"note": "kept", "scheduling.k8s.io/group-name": "no"}}
    )
    template["spec"]["unheardOf"] = {"kept": True}
    metadata = {
        "annotations": {
            "volcano.sh/preemptable": "true",
            "volcano.sh/cooldown-time": "600s",
            "volcano.sh/revocable-zone": "*",
            "volcano.sh/jdb-min-available": "1",
            "volcano.sh/jdb-max-unavailable": "2",
            "other": "not copied",
        },
        "labels": {"volcano.sh/preemptable": "true"},
    }
    task = a_task("ps", 1, template=template, topologyPolicy="restricted")
    world = submitted(task, metadata=metadata, priorityClassName="high", queue="q")
    world.put(a_queue("q"))
    world.wait(2)

    world.enqueue()

    pod = world.raw(Pod, "j-ps-0")
    assert pod["metadata"]["labels"] == {
        "mine": "yes",
        "volcano.sh/task-index": "0",
        "volcano.sh/job-name": "j",
        "volcano.sh/task-spec": "ps",
        "volcano.sh/job-namespace": "default",
        "volcano.sh/queue-name": "q",
        "volcano.sh/preemptable": "true",
    }
    assert pod["metadata"]["annotations"] == {
        "note": "kept",
        "volcano.sh/task-index": "0",
        "volcano.sh/task-spec": "ps",
        "scheduling.k8s.io/group-name": "j-uid-j",
        "volcano.sh/job-name": "j",
        "volcano.sh/queue-name": "q",
        "volcano.sh/job-version": "0",
        "volcano.sh/template-uid": "j-ps",
        "volcano.sh/job-retry-count": "0",
        "volcano.sh/numa-topology-policy": "restricted",
        "volcano.sh/preemptable": "true",
        "volcano.sh/cooldown-time": "600s",
        "volcano.sh/revocable-zone": "*",
        "volcano.sh/jdb-min-available": "1",
    }
    assert pod["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "name": "j",
            "uid": "uid-j",
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    assert (pod["spec"]["schedulerName"], pod["spec"]["priorityClassName"]) == ("volcano", "high")
    assert pod["spec"]["unheardOf"] == {"kept": True}


def test_the_template_comes_before_the_job_where_it_says_something() -> None:
    template = a_template("low")
    template["spec"]["schedulerName"] = "default-scheduler"
    world = submitted(a_task(template=template), priorityClassName="high")

    world.enqueue()

    spec = world.raw(Pod, "j-worker-0")["spec"]
    assert (spec["schedulerName"], spec["priorityClassName"]) == ("default-scheduler", "low")


def test_pods_of_a_partitioned_task_know_their_partition() -> None:
    world = submitted(a_task("p", 4, partitionPolicy={"totalPartitions": 2, "partitionSize": 2}))

    world.enqueue()

    partitions = {pod.name: pod.labels["volcano.sh/partition-id"] for pod in world.all(Pod)}
    assert partitions == {"j-p-0": "0", "j-p-1": "0", "j-p-2": "1", "j-p-3": "1"}


def test_a_queue_that_extends_to_other_clusters_marks_job_and_pods() -> None:
    world = submitted(a_task())
    world.change(Queue, "default", {"spec": {"extendClusters": [{"name": "far"}]}})

    world.enqueue()

    pod = world.raw(Pod, "j-worker-0")["metadata"]
    assert world.job.annotations["volcano.sh/job-forwarding"] == "true"
    assert pod["labels"]["volcano.sh/job-forwarding"] == pod["annotations"]["volcano.sh/job-forwarding"] == "true"


def test_a_name_that_somebody_else_has_taken_is_left_alone() -> None:
    world = submitted(a_task(replicas=2))
    world.put({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "j-worker-0"}, "spec": {}})

    world.enqueue()
    world.run("j-worker-1").wait(10)

    assert world.get(Pod, "j-worker-0").controller is None
    assert world.job.status.running == 1


# -- dependencies -----------------------------------------------------------------------------------------------------
def test_a_task_starts_when_the_one_it_depends_on_is_up() -> None:
    world = submitted(a_task("ps", 2, minAvailable=1), a_task("worker", 1, dependsOn={"name": ["ps"]}), minAvailable=1)

    world.enqueue()
    first = set(world.pods())
    world.run("j-ps-1")

    assert first == {"j-ps-0", "j-ps-1"}
    assert "j-worker-0" in world.pods()


def test_a_container_that_is_not_ready_holds_the_dependent_task_back() -> None:
    world = submitted(a_task("ps", 1), a_task("worker", 1, dependsOn={"name": ["ps"]}), minAvailable=1)
    world.enqueue()
    status = {"phase": "Running", "containerStatuses": [{"name": "main", "ready": False}]}

    world.change(Pod, "j-ps-0", {"status": status})
    world.settle()
    before = set(world.pods())
    world.run("j-ps-0")

    assert before == {"j-ps-0"}
    assert set(world.pods()) == {"j-ps-0", "j-worker-0"}


@pytest.mark.parametrize(("iteration", "starts"), [("any", True), ("all", False), ("", False)])
def test_of_several_dependencies_any_or_all_are_needed(iteration: str, starts: bool) -> None:
    depends = {"name": ["a", "b"], "iteration": iteration}
    world = submitted(a_task("a"), a_task("b"), a_task("c", 1, dependsOn=depends), minAvailable=1)
    world.enqueue()

    world.run("j-a-0")

    assert ("j-c-0" in world.pods()) is starts


# -- PodGroup -----------------------------------------------------------------------------------------------------------
def test_the_podgroup_tells_the_scheduler_about_the_gang() -> None:
    topology = {"mode": "soft", "highestTierAllowed": 2, "highestTierName": "rack"}
    tasks = (
        a_task(
            "a",
            4,
            minAvailable=None,
            partitionPolicy={"totalPartitions": 2, "partitionSize": 2, "minPartitions": 1, "networkTopology": topology},
        ),
        a_task("b", 3, minAvailable=1),
    )
    metadata = {"labels": {"team": "x"}, "annotations": {"volcano.sh/sla-waiting-time": "1h"}}
    world = submitted(*tasks, minAvailable=3, priorityClassName="high", networkTopology=topology, metadata=metadata)

    group = world.raw(PodGroup, "j-uid-j")

    assert group["metadata"]["labels"] == {"team": "x"}
    assert group["metadata"]["annotations"] == {"volcano.sh/sla-waiting-time": "1h"}
    assert group["metadata"]["ownerReferences"][0]["uid"] == "uid-j"
    assert "status" not in group
    spec = group["spec"]
    assert spec["minMember"] == 3
    assert spec["minTaskMember"] == {"a": 2, "b": 1}
    assert (spec["queue"], spec["priorityClassName"]) == ("default", "high")
    assert spec["networkTopology"] == {"mode": "soft", "highestTierAllowed": 2}
    assert spec["subGroupPolicy"] == [
        {
            "name": "a",
            "subGroupSize": 2,
            "minSubGroups": 1,
            "labelSelector": {"matchLabels": {"volcano.sh/task-spec": "a"}},
            "matchLabelKeys": ["volcano.sh/partition-id"],
            "networkTopology": topology,
        }
    ]


def test_a_podgroup_that_is_right_is_not_written_again() -> None:
    topology = {"mode": "hard", "highestTierName": "rack"}
    task = a_task("a", 4, partitionPolicy={"totalPartitions": 2, "partitionSize": 2, "networkTopology": topology})
    world = submitted(task, networkTopology=topology)
    version = world.raw(PodGroup, "j-uid-j")["metadata"]["resourceVersion"]

    world.restart()
    world.settle()

    assert world.raw(PodGroup, "j-uid-j")["metadata"]["resourceVersion"] == version


def test_two_pods_with_a_device_need_what_the_reference_says() -> None:
    template = a_template(cpu="1", memory="1000Mi", gpu="1")
    world = submitted(a_task("a", template=template), a_task("b", template=template))

    assert world.group.spec.min_resources == {
        "count/pods": "2",
        "pods": "2",
        "cpu": "2",
        "memory": "2000Mi",
        "nvidia.com/gpu": "2",
        "limits.cpu": "2",
        "limits.memory": "2000Mi",
        "requests.cpu": "2",
        "requests.memory": "2000Mi",
        "requests.nvidia.com/gpu": "2",
    }


def priority_class(name: str, value: int) -> dict[str, Any]:
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}


@pytest.mark.parametrize(
    ("least", "a", "b", "cpu"),
    [
        (2, None, None, "20"),  # fewer than all: the first two pods of the task with priority
        (3, None, None, "21"),  # and then of the other
        (4, 1, 1, "22"),  # more than the tasks' minima: those first, the rest by priority
        (2, 1, 1, "11"),  # just the minima
    ],
)
def test_the_least_a_gang_needs_counts_tasks_of_higher_priority_first(
    least: int, a: int | None, b: int | None, cpu: str
) -> None:
    tasks = (
        a_task("a", 2, template=a_template(cpu="1"), minAvailable=a),
        a_task("b", 2, template=a_template("high", cpu="10"), minAvailable=b),
    )
    world = JobWorld(a_job(*tasks, minAvailable=least))
    world.put(priority_class("high", 100))

    world.settle()

    assert world.group.spec.min_resources["cpu"] == cpu


def test_a_podgroup_named_after_the_job_alone_is_accepted() -> None:
    world = JobWorld(a_job(a_task()))
    owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j", "uid": "uid-j", "controller": True}
    group = {
        "metadata": {"name": "j", "ownerReferences": [owner]},
        "spec": {"minMember": 1},
        "status": {"phase": "Inqueue"},
    }
    world.put({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", **group})

    world.settle()

    assert world.group is None
    assert world.get(Pod, "j-worker-0").annotations["scheduling.k8s.io/group-name"] == "j"


# -- volumes --------------------------------------------------------------------------------------------------------
def test_a_described_claim_is_made_once_and_its_name_is_written_back() -> None:
    volumes = [
        {"mountPath": "/data", "volumeClaim": {"accessModes": ["ReadWriteOnce"]}},
        {"mountPath": "/given", "volumeClaimName": "given"},
    ]
    world = JobWorld(a_job(a_task(), volumes=volumes))
    world.put({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "given"}, "spec": {}})

    world.settle()
    world.enqueue()

    generated, given = (volume.volume_claim_name for volume in world.job.spec.volumes)
    made = world.raw(PersistentVolumeClaim, generated)
    assert given == "given"
    assert generated.startswith("j-pvc-") and len(generated) == len("j-pvc-") + 12
    assert made["spec"] == {"accessModes": ["ReadWriteOnce"]}
    assert made["metadata"]["ownerReferences"][0]["uid"] == "uid-j"
    entries = world.job.status.controlled_resources
    assert entries == {f"volume-pvc-{generated}": generated, "volume-pvc-given": "given"}
    pod = world.raw(Pod, "j-worker-0")["spec"]
    assert [volume["persistentVolumeClaim"]["claimName"] for volume in pod["volumes"]] == [generated, "given"]
    assert [mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]] == ["/data", "/given"]


def test_a_claim_listed_twice_is_mounted_once_and_not_in_init_containers() -> None:
    template = {"spec": {"containers": [BOX, {"name": "side"}], "initContainers": [{"name": "init"}]}}
    volumes = [{"mountPath": "/a", "volumeClaimName": "c"}, {"mountPath": "/b", "volumeClaimName": "c"}]
    world = JobWorld(a_job(a_task(template=template), volumes=volumes))
    world.put({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"}, "spec": {}})

    world.settle()
    world.enqueue()

    spec = world.raw(Pod, "j-worker-0")["spec"]
    assert len(spec["volumes"]) == 1
    assert [[m["mountPath"] for m in c["volumeMounts"]] for c in spec["containers"]] == [["/a"], ["/a"]]
    assert "volumeMounts" not in spec["initContainers"][0]


def test_a_job_waits_for_a_claim_that_does_not_exist_and_goes_on_when_it_does() -> None:
    world = JobWorld(a_job(a_task(), volumes=[{"mountPath": "/a", "volumeClaimName": "late"}]))
    world.wait(10)
    state = world.job.status.state

    world.put({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "late"}, "spec": {}})
    world.wait(60)

    assert (state.phase, state.reason) == ("Pending", "PVCError")
    assert "late" in state.message
    assert world.reasons().count("PVCError") == 1
    assert world.group is not None
    assert world.job.status.state.reason == ""


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"volumes": [{"mountPath": "/a", "volumeClaimName": "never"}]}, "PVCError"),
        ({"queue": "nowhere"}, "QueueNotFound"),
        ({"plugins": {"nonsense": []}}, "PluginError"),
        ({"plugins": {"ray": []}}, "PluginError"),
    ],
)
def test_a_problem_that_does_not_pass_terminates_the_job_in_the_end(spec: dict[str, Any], reason: str) -> None:
    world = JobWorld(a_job(a_task(), **spec))

    world.wait(150)
    during = world.phase
    world.wait(20)

    assert during == Phase.PENDING
    assert world.phase == Phase.TERMINATED
    assert reason in world.reasons()
    assert any("TerminateJob" in event.message and "retry limit" in event.message for event in world.events)


def test_patience_without_a_limit_never_ends() -> None:
    world = JobWorld(a_job(a_task(), queue="nowhere"), max_requeue=-1)

    world.wait(100_000)

    assert world.phase == Phase.PENDING


# -- scaling -----------------------------------------------------------------------------------------------------------
def test_scaling_up_makes_the_next_indices_and_down_removes_the_highest() -> None:
    world = JobWorld(a_job(a_task(replicas=2, minAvailable=1), minAvailable=1)).started()

    world.scale(worker=4)
    up = set(world.pods())
    world.run().scale(worker=1)

    assert up == {f"j-worker-{index}" for index in range(4)}
    assert set(world.pods()) == {"j-worker-0"}
    assert world.phase == Phase.RUNNING


def test_the_podgroup_follows_a_new_gang_size() -> None:
    world = JobWorld(a_job(a_task(replicas=2, template=a_template(cpu="1")))).started()
    spec = world.raw(Job, "j")["spec"]
    tasks = [{**spec["tasks"][0], "replicas": 5, "minAvailable": 5}]

    world.change(Job, "j", {"spec": {"minAvailable": 5, "tasks": tasks, "priorityClassName": "high"}})
    world.settle()

    assert world.group.spec.min_member == 5
    assert world.group.spec.min_task_member == {"worker": 5}
    assert world.group.spec.min_resources["cpu"] == "5"
    assert world.group.spec.priority_class_name == "high"
    assert world.job.status.min_available == 5
    assert world.phase == Phase.PENDING  # three of five wait: more than the gang can spare


def test_a_job_scaled_to_nothing_stays_running() -> None:
    world = JobWorld(a_job(a_task(replicas=2))).started()

    world.scale(worker=0).wait()

    assert world.pods() == {}
    assert world.phase == Phase.RUNNING


# -- status ----------------------------------------------------------------------------------------------------------
def test_the_status_of_a_large_job_is_written_a_handful_of_times() -> None:
    world = JobWorld(a_job(a_task(replicas=300)))
    world.settle()
    world.enqueue()

    for index in range(300):
        world.run(f"j-worker-{index}")
    world.wait()
    for index in range(300):
        world.succeed(f"j-worker-{index}")
    world.wait()

    assert world.phase == Phase.COMPLETED
    assert world.job.status.succeeded == 300
    assert len(world.statuses) <= 8


def test_that_a_new_job_is_pending_is_said_when_there_is_nothing_more_urgent() -> None:
    world = JobWorld(a_job(a_task(replicas=1)))
    key = world.job.key
    first = JobController().decide(key, world.mirror, (WakeCause.AT_ONCE,))
    idle = JobController().decide(key, world.mirror, (WakeCause.WHEN_IDLE,))

    assert [type(step).__name__ for step in first] == ["Create", "Later"]
    assert first[-1].when_idle
    assert [type(step).__name__ for step in idle] == ["Create", "Patch"]


def test_a_job_that_runs_before_anything_was_said_has_both_phases_in_its_history() -> None:
    world = JobWorld(a_job(a_task(replicas=1)))
    controller, key = JobController(), world.job.key
    for _ in range(2):  # the PodGroup, then the pods
        world.apply(controller.decide(key, world.mirror, (WakeCause.AT_ONCE,)))
        for group in world.all(PodGroup):
            world.change(PodGroup, group.name, {"status": {"phase": "Inqueue"}})
    assert (world.phase, len(world.pods())) == ("", 1)
    for name in world.pods():
        world.change(Pod, name, {"status": {"phase": "Running"}})

    world.apply(controller.decide(key, world.mirror, (WakeCause.AT_ONCE,)))

    assert [condition.status for condition in world.job.status.conditions] == ["Pending", "Running"]
    assert world.phase == "Running"


def test_counts_are_kept_by_phase_and_by_task() -> None:
    world = JobWorld(a_job(a_task("a", 3), a_task("b", 1), minAvailable=1)).started()

    world.fail("j-a-0")
    world.succeed("j-a-1").wait()

    status = world.raw(Job, "j")["status"]
    assert status["taskStatusCount"] == {
        "a": {"phase": {"Failed": 1, "Running": 1, "Succeeded": 1}},
        "b": {"phase": {"Running": 1}},
    }
    assert (status["running"], status["failed"], status["succeeded"]) == (2, 1, 1)
    assert "pending" not in status


def test_each_phase_is_once_in_the_history_and_the_last_one_last() -> None:
    world = JobWorld(a_job(policies=[policy("RestartJob", "PodFailed")])).started()

    world.fail("j-worker-0")
    world.enqueue().run()

    assert [condition.status for condition in world.job.status.conditions] == ["Restarting", "Pending", "Running"]


def test_the_duration_is_from_creation_to_the_end() -> None:
    world = JobWorld(a_job()).started()
    world.wait(60)

    world.succeed()

    assert world.job.status.running_duration == "1m2s"


def why(world: JobWorld, text: str) -> None:
    world.change(
        PodGroup, "j-uid-j", {"metadata": {"annotations": {WHY_ANNOTATION: text}}, "status": {"phase": "Pending"}}
    )
    world.settle()


def test_a_job_says_why_it_waits_in_the_schedulers_words() -> None:
    world = submitted()

    why(world, '{"stage":"enqueue","plugin":"capacity","cause":"QueueFull","message":"queue default: cpu 4 of 4 used"}')

    state = world.job.status.state
    assert (state.phase, state.reason, state.message) == ("Pending", "QueueFull", "queue default: cpu 4 of 4 used")


def test_the_reason_is_gone_once_the_job_runs() -> None:
    world = submitted()
    why(world, '{"stage":"enqueue","cause":"QueueFull","message":"full"}')

    world.enqueue().run()

    assert world.phase == Phase.RUNNING
    assert world.job.status.state.reason == world.job.status.state.message == ""


def test_numbers_that_change_are_written_once_a_minute_and_a_new_cause_at_once() -> None:
    world = submitted()
    why(world, '{"stage":"enqueue","cause":"QueueFull","message":"1 of 9"}')
    writes = len(world.statuses)

    for number in range(20):
        why(world, f'{{"stage":"enqueue","cause":"QueueFull","message":"{number} of 9"}}')
        world.wait(1)
    same_cause = len(world.statuses)
    why(world, '{"stage":"enqueue","cause":"NoNode","message":"0 of 3 nodes fit","counts":{"Insufficient cpu":3}}')

    assert same_cause == writes
    assert world.job.status.state.reason == "NoNode"
    assert world.job.status.state.message == "0 of 3 nodes fit; 3 nodes: Insufficient cpu"


@pytest.mark.parametrize("text", ["", "not json", "[]", "7", '{"message":7}', "[[1]]", '"' + "x" * 100_000])
def test_a_reason_that_cannot_be_read_says_nothing(text: str) -> None:
    world = submitted()

    why(world, text)

    assert world.job.status.state.reason == ""


def test_a_waiting_condition_is_told_once_and_becomes_the_reason() -> None:
    world = submitted()
    condition = {
        "type": "Unschedulable",
        "status": "True",
        "reason": "NotEnoughResources",
        "message": "2/0 tasks in gang unschedulable",
    }

    world.change(PodGroup, "j-uid-j", {"status": {"phase": "Pending", "conditions": [condition]}})
    world.settle()
    world.wait(5)

    told = [event for event in world.events if event.reason == "PodGroupPending"]
    assert len(told) == 1 and told[0].type == "Warning"
    assert "unschedulable: 2/0 tasks in gang unschedulable" in told[0].message
    assert world.job.status.state.reason == "NotEnoughResources"


# -- the rest -------------------------------------------------------------------------------------------------------
def test_nothing_is_done_about_a_job_that_is_being_deleted() -> None:
    world = JobWorld(a_job(metadata={"finalizers": ["foregroundDeletion"]})).started()
    world.delete(Job, "j")
    before = world.writes

    world.evict("j-worker-0")
    world.wait(10)

    assert world.writes == before


def test_a_command_for_a_job_that_is_gone_is_removed() -> None:
    world = JobWorld()

    world.put(a_command("AbortJob"))
    world.settle()

    assert not [row for row, _ in world.objects if row.kind == "Command"]


def test_a_command_is_deleted_before_it_is_acted_on() -> None:
    world = JobWorld(a_job()).started()
    world.log.clear()

    world.command("AbortJob")

    deleted = next(i for i, step in enumerate(world.log) if "Command" in repr(step) and type(step).__name__ == "Delete")
    acted = next(
        i for i, step in enumerate(world.log) if "'phase': <Phase.ABORTING" in repr(step) or "Aborting" in repr(step)
    )
    assert deleted < acted
    assert world.reasons().count("CommandIssued") == 1


def test_commands_of_the_same_second_are_obeyed_in_the_order_in_which_they_were_asked_for() -> None:
    world = JobWorld(a_job()).started()
    world.put(a_command("AbortJob", name="z"))
    world.put(a_command("ResumeJob", name="a"))

    world.settle()
    world.wait().enqueue().run()

    assert "Aborting" in world.phases
    assert world.phase == "Running"


def test_commands_are_obeyed_in_order_though_the_clock_of_the_server_was_set_back_between_them() -> None:
    world = JobWorld(a_job()).started()
    world.now += timedelta(hours=1)
    world.put(a_command("AbortJob"))
    world.now -= timedelta(hours=1)
    world.put(a_command("ResumeJob"))

    world.settle()
    world.wait().enqueue().run()

    assert "Aborting" in world.phases
    assert world.phase == "Running"


def test_a_job_with_plugins_lets_an_older_job_of_its_name_go_first() -> None:
    older = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j", "uid": "older", "controller": True}
    world = JobWorld(a_job(a_task(), plugins={"svc": []}))
    world.put(
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "j", "ownerReferences": [older]}, "spec": {}}
    )
    world.wait(1000)
    waiting = world.job.status.state

    world.delete(Service, "j")
    world.wait(61)

    assert (waiting.phase, waiting.reason) == ("Pending", "OlderJobEnding")
    assert world.get(Service, "j").controller.uid == "uid-j"
    assert world.group is not None


# -- gangs that can never start again ------------------------------------------------------------------------------------
def a_gang_with_a_failed_and_an_evicted_pod(**more: Any) -> JobWorld:
    world = submitted(a_task(replicas=2, **more))
    world.enqueue()
    world.run("j-worker-0", "j-worker-1")
    world.evict("j-worker-0")
    world.fail("j-worker-1")
    world.wait()
    return world


def test_a_gang_of_which_a_pod_failed_and_another_was_evicted_has_failed() -> None:
    world = a_gang_with_a_failed_and_an_evicted_pod()

    assert world.phase == Phase.FAILED


def test_such_a_gang_waits_for_a_policy_that_restarts_it_later() -> None:
    restart = policy("RestartJob", "PodFailed", timeout="30s")
    world = a_gang_with_a_failed_and_an_evicted_pod(policies=[restart])

    before = world.phase
    world.wait(40)
    world.enqueue()

    assert before == Phase.PENDING
    assert world.job.status.version == 1
    assert world.phase == Phase.PENDING
    assert world.pods() == {"j-worker-0": "Pending", "j-worker-1": "Pending"}
