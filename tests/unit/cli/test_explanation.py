"""Why a job waits: a test per stage and cause, each on a cluster made so that the answer is known."""

import msgspec

from volcano.api.why import Why, encode_why
from volcano.cli.explain import rendered
from volcano.cli.explanation import LATER, NEVER, NOTHING, Facts, explain, foreseen
from volcano.cli.node_funnel import pod_requests


def a_node(name, labels=None, taints=(), ready=True, **allocatable):
    amounts = {"cpu": "8", "memory": "32Gi", "pods": "110"} | {k.replace("_", "/"): v for k, v in allocatable.items()}
    return {
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"taints": list(taints)},
        "status": {"allocatable": amounts, "conditions": [{"type": "Ready", "status": "True" if ready else "False"}]},
    }


def a_job(*, replicas=2, minimum=None, queue="default", phase="Pending", spec=None, **requests):
    requests = requests or {"cpu": "1"}
    container = {"name": "c", "resources": {"requests": {k.replace("_", "/"): v for k, v in requests.items()}}}
    template = {"spec": {"containers": [container], **(spec or {})}}
    task = {"name": "worker", "replicas": replicas, "minAvailable": minimum if minimum is not None else replicas}
    return {
        "metadata": {"name": "demo", "namespace": "default", "uid": "job-uid"},
        "spec": {"queue": queue, "minAvailable": replicas, "tasks": [task | {"template": template}]},
        "status": {"state": {"phase": phase}},
    }


def a_group(
    name="demo-job-uid",
    queue="default",
    phase="Inqueue",
    why=None,
    owner="demo",
    created="2026-01-01T00:00:00Z",
    priority="",
):
    annotations = {"scheduling.volcano.sh/why": encode_why(why)} if why else {}
    return {
        "metadata": {"name": name, "annotations": annotations, "creationTimestamp": created,
                     "ownerReferences": [{"name": owner, "uid": f"{owner}-uid"}]},
        "spec": {"queue": queue, "priorityClassName": priority},
        "status": {"phase": phase},
    }  # fmt: skip


def a_queue(name="default", state="Open", **spec):
    allocated = spec.pop("allocated", {})
    return {"metadata": {"name": name}, "spec": spec, "status": {"state": state, "allocated": allocated}}


def a_pod(node, task="other", job="other", **requests):
    return {
        "metadata": {"name": f"{job}-{task}", "namespace": "default",
                     "annotations": {"volcano.sh/job-name": job, "volcano.sh/task-spec": task}},
        "spec": {"nodeName": node, "containers": [{"name": "c", "resources": {"requests": requests}}]},
        "status": {"phase": "Running"},
    }  # fmt: skip


def facts(job, group=None, queues=None, groups=(), nodes=(), pods=(), priorities=None):
    queues = [a_queue()] if queues is None else queues
    everyone = [*groups, *([group] if group else [])]
    return Facts(job, group, queues, everyone, list(nodes), list(pods), priorities or {})


def test_a_finished_job_waits_for_nothing():
    found = explain(facts(a_job(phase="Completed")))

    assert (found.verdict, found.reason) == (NOTHING, "the job is Completed")


def test_a_queue_that_does_not_exist():
    found = explain(facts(a_job(queue="nope"), a_group(queue="nope", phase="Pending")))

    assert (found.stage, found.verdict) == ("queue", LATER)
    assert "there is no queue nope" in found.reason


def test_a_closed_queue():
    found = explain(facts(a_job(), a_group(phase="Pending"), [a_queue(state="Closed")], nodes=[a_node("n")]))

    assert (found.stage, found.verdict) == ("queue", LATER)
    assert "queue default is Closed" in found.reason


def test_not_enqueued_says_what_the_queue_holds_and_who_holds_it():
    why = Why("enqueue", "overcommit", plugin="proportion", message="needs 8 nvidia.com/gpu")
    queue = a_queue("ml", capability={"nvidia.com/gpu": "12"}, allocated={"nvidia.com/gpu": "9"})
    groups = [a_group("a", "ml", "Running", owner="a"), a_group("b", "ml", "Running", owner="b")]
    job = a_job(queue="ml", replicas=1, nvidia_com_gpu="8") | {}
    job["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["resources"]["requests"] = {"nvidia.com/gpu": "8"}
    node = a_node("n")
    node["status"]["allocatable"]["nvidia.com/gpu"] = "8"

    found = explain(facts(job, a_group(queue="ml", phase="Pending", why=why), [queue], groups, [node]))

    assert (found.stage, found.plugin, found.verdict) == ("enqueue", "proportion", LATER)
    assert found.reason == "needs 8 nvidia.com/gpu; queue ml has 3 of 12 free nvidia.com/gpu, held by a and b"


def test_more_than_the_queue_may_ever_have_never_runs():
    why = Why("quota", "capability", plugin="capacity", message="over capability")
    queue = a_queue(capability={"cpu": "4"})

    found = explain(facts(a_job(replicas=8), a_group(why=why), [queue], nodes=[a_node("n", cpu="64")]))

    assert found.verdict == NEVER
    assert found.never_because == "it needs 8 cpu at once; queue default may never have more than 4"


def test_a_limit_of_an_ancestor_counts_too():
    queues = [a_queue("root"), a_queue("top", capability={"cpu": "4"}), a_queue("leaf", parent="top")]

    found = explain(
        facts(
            a_job(replicas=8, queue="leaf"),
            a_group(queue="leaf", why=Why("quota", "x")),
            queues,
            nodes=[a_node("n", cpu="64")],
        )
    )

    assert "queue top may never have more than 4" in found.never_because


def test_the_funnel_counts_the_nodes_after_each_condition():
    gpu = "nvidia.com/gpu"
    nodes = [a_node(f"plain-{i}") for i in range(600)]
    nodes += [a_node(f"labelled-{i}", labels={"pool": "gpu"}) for i in range(388)]
    for i in range(12):
        node = a_node(f"gpu-{i}", labels={"pool": "gpu"})
        node["status"]["allocatable"][gpu] = "8"
        nodes.append(node)
    pods = [a_pod(f"gpu-{i}", **{gpu: "1"}) for i in range(12)]
    job = a_job(replicas=1, spec={"nodeSelector": {"pool": "gpu"}})
    job["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["resources"]["requests"] = {gpu: "8"}

    found = explain(facts(job, a_group(why=Why("fit", "Insufficient", message="no room")), nodes=nodes, pods=pods))

    (task,) = found.tasks
    assert str(task.funnel) == (
        "1000 nodes → 400 match the selector and affinity → 12 have 8 nvidia.com/gpu → 0 have it free"
    )
    assert task.funnel.stages[-1].causes == {"not enough nvidia.com/gpu": 12}
    assert found.verdict == LATER
    assert "0 have it free" in rendered(found)


def test_a_selector_that_matches_no_node_never_runs():
    job = a_job(spec={"nodeSelector": {"zone": "mars"}})

    found = explain(facts(job, a_group(why=Why("fit", "affinity")), nodes=[a_node("n")]))

    assert found.verdict == NEVER
    assert "no node would do" in found.never_because


def test_a_pod_larger_than_every_node_never_runs():
    found = explain(facts(a_job(cpu="100"), a_group(why=Why("fit", "Insufficient")), nodes=[a_node("n")]))

    assert found.verdict == NEVER


def test_a_gang_larger_than_the_whole_cluster_never_runs():
    found = explain(facts(a_job(replicas=20), a_group(why=Why("gang", "x")), nodes=[a_node("a"), a_node("b")]))

    assert found.verdict == NEVER
    assert "needs 20 pods at once, all suitable nodes together hold 16" in found.never_because


def test_a_gang_that_only_waits_for_others_runs_later():
    pods = [a_pod("a", cpu="7"), a_pod("b", cpu="7")]

    found = explain(
        facts(
            a_job(replicas=8),
            a_group(why=Why("gang", "NotEnough", message="2 of 8 tasks fit")),
            nodes=[a_node("a"), a_node("b")],
            pods=pods,
        )
    )

    assert (found.stage, found.verdict) == ("gang", LATER)
    assert found.tasks[0].funnel.fits_now == 2


def test_taints_and_sick_nodes_are_a_stage_of_their_own():
    taint = {"key": "dedicated", "value": "x", "effect": "NoSchedule"}
    nodes = [a_node("a", taints=[taint]), a_node("b", ready=False), a_node("c")]

    found = explain(facts(a_job(), a_group(why=Why("fit", "x")), nodes=nodes))

    stage = found.tasks[0].funnel.stages[1]
    assert (stage.nodes, stage.causes) == (1, {"not ready": 1, "taint dedicated": 1})
    tolerant = a_job(spec={"tolerations": [{"key": "dedicated", "operator": "Exists"}]})
    assert explain(facts(tolerant, a_group(why=Why("fit", "x")), nodes=nodes)).tasks[0].funnel.stages[1].nodes == 2


def test_the_position_in_the_queue_follows_priority_then_age():
    groups = [
        a_group("old", owner="old", phase="Pending", created="2025-01-01T00:00:00Z"),
        a_group("urgent", owner="urgent", phase="Pending", created="2026-06-01T00:00:00Z", priority="high"),
        a_group("young", owner="young", phase="Pending", created="2026-06-01T00:00:00Z"),
        a_group("runs", owner="runs", phase="Running"),
    ]

    found = explain(
        facts(a_job(), a_group(why=Why("fit", "x")), groups=groups, nodes=[a_node("n")], priorities={"high": 100})
    )

    assert (found.queue.position, found.queue.waiting, found.queue.ahead) == (3, 4, ["urgent", "old"])


def test_a_job_whose_pods_are_all_placed_is_blocked_by_nothing():
    pods = [a_pod("n", task="worker", job="demo"), a_pod("n", task="worker", job="demo")]

    found = explain(facts(a_job(), a_group(phase="Running"), nodes=[a_node("n")], pods=pods))

    assert found.verdict == NOTHING


def test_bind_failures_are_shown_as_recorded():
    why = Why("bind", "BindFailed", message="binding to n failed: conflict")

    found = explain(facts(a_job(), a_group(why=why), nodes=[a_node("n")]))

    assert (found.stage, found.reason) == ("bind", "binding to n failed: conflict")


def test_an_explanation_is_json():
    found = explain(facts(a_job(), a_group(why=Why("fit", "x", counts={"Insufficient cpu": 3})), nodes=[a_node("n")]))

    assert msgspec.json.decode(msgspec.json.encode(found))["counts"] == {"Insufficient cpu": 3}


def test_a_pods_requests_count_init_containers_sidecars_and_overhead():
    def container(cpu, **more):
        return {"resources": {"requests": {"cpu": cpu}}, **more}

    spec = {
        "containers": [container("1"), container("500m")],
        "initContainers": [container("1", restartPolicy="Always"), container("4")],
        "overhead": {"cpu": "100m"},
    }

    assert str(pod_requests(spec)["cpu"]) == "5100m"


def test_a_gang_that_runs_says_why_its_further_pods_wait():
    waiting = a_pod("", task="worker", job="demo", cpu="1")
    message = "0/1 nodes are unavailable: 1 Insufficient cpu."
    waiting["status"] = {"conditions": [{"type": "PodScheduled", "status": "False", "message": message}]}
    given = facts(a_job(minimum=1, phase="Running"), a_group(phase="Running"), nodes=[a_node("n1")], pods=[waiting])

    assert explain(given).reason == message


def test_a_gang_that_needs_a_task_which_waits_for_the_gang_never_runs():
    job = a_job(replicas=1)
    job["spec"]["tasks"].append({**job["spec"]["tasks"][0], "name": "second", "dependsOn": {"name": ["worker"]}})
    job["spec"]["minAvailable"] = 2
    why = Why("gang", "NotEnoughPods", message="not enough pods")

    found = explain(facts(job, a_group(why=why), nodes=[a_node("n1")]))

    assert found.verdict == NEVER
    assert "minAvailable 2 needs second (after worker) from the start" in found.never_because


def test_pods_that_the_api_server_refuses_are_told_with_its_words():
    message = "Failed to create Pod default/demo-worker-0: no PriorityClass with name nope was found"
    event = {"metadata": {}, "reason": "FailedCreate", "message": message, "lastTimestamp": "2026-01-01T00:00:00Z"}
    given = msgspec.structs.replace(facts(a_job(), a_group(), nodes=[a_node("n1")]), events=[event])

    found = explain(given)

    assert (found.stage, found.reason) == ("admission", message)


# -- what the scheduler would do next -------------------------------------------------------------------------------
def test_whom_the_scheduler_would_preempt_for_the_job_is_named():
    given = facts(a_job(), a_group(), nodes=[a_node("n1")], pods=[a_pod("n1", job="low", cpu="8")])
    answer = {
        "pods": {"default/demo-worker-0": {"waitsFor": "n1"}, "default/demo-worker-1": {"reason": "Pending"}},
        "evictions": [
            {"pod": "default/low-other", "node": "n1", "for": "default/demo-worker-0"},
            {"pod": "default/elsewhere", "node": "n2", "for": "default/third"},
        ],
    }

    found = foreseen(explain(given), given, answer)

    assert found.would_preempt == ["default/low-other"]
    assert "next   the scheduler would preempt default/low-other" in rendered(found)


def test_pods_that_are_being_ended_for_the_job_are_named():
    ending = a_pod("n1", job="low", cpu="8")
    ending["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    given = facts(a_job(), a_group(), nodes=[a_node("n1")], pods=[ending])

    found = foreseen(explain(given), given, {"pods": {"default/demo-worker-0": {"waitsFor": "n1"}}, "evictions": []})

    assert found.waits_for == {"n1": ["default/low-other"]}
    assert "room on n1 is promised to it, it waits until default/low-other ended" in rendered(found)
