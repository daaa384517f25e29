"""Why a job waits: how the command line puts together what the scheduler, the API server and the controller wrote."""

import msgspec

from volcano.api.jobs.explanation import Explanation, NodeStage, QueueStanding, TaskNodes
from volcano.api.jobs.simulation import SimulatedEviction, SimulatedJob, SimulatedPod, Simulation
from volcano.api.jobs.why import Why, encode_why
from volcano.cli.explain import rendered
from volcano.cli.explanation import LATER, NEVER, NOTHING, JobFacts, explain


def a_job(*, replicas=2, phase="Pending"):
    return {
        "metadata": {"name": "demo", "namespace": "default", "uid": "job-uid"},
        "spec": {"queue": "default", "minAvailable": replicas, "tasks": [{"name": "worker", "replicas": replicas}]},
        "status": {"state": {"phase": phase}},
    }


def a_group(phase="Inqueue", why=None):
    annotations = {"scheduling.volcano.sh/why": encode_why(why)} if why else {}
    return {"metadata": {"name": "demo-job-uid", "annotations": annotations}, "status": {"phase": phase}}


def a_pod(node, conditions=()):
    return {
        "metadata": {"name": "demo-worker-0", "namespace": "default"},
        "spec": {"nodeName": node},
        "status": {"phase": "Pending", "conditions": list(conditions)},
    }


def an_answer(explanation=None, evictions=(), **pods):
    simulated = {f"default/{name.replace('_', '-')}": pod for name, pod in pods.items()}
    jobs = {"default/demo-job-uid": SimulatedJob("Inqueue", explanation=explanation)}
    return Simulation(0, len(pods), simulated, jobs, list(evictions))


def test_a_finished_job_waits_for_nothing():
    found = explain(JobFacts(a_job(phase="Completed")))

    assert (found.verdict, found.reason) == (NOTHING, "the job is Completed")


def test_a_job_without_a_podgroup_waits_for_the_controller():
    found = explain(JobFacts(a_job()))

    assert (found.stage, found.verdict) == ("admission", LATER)
    assert "has not made its PodGroup yet" in found.reason


def test_the_recorded_reason_is_shown_when_the_scheduler_cannot_be_asked():
    why = Why("bind", "BindFailed", message="binding to n failed: conflict")

    found = explain(JobFacts(a_job(), a_group(why=why)))

    assert (found.stage, found.reason, found.verdict) == ("bind", "binding to n failed: conflict", LATER)


def test_what_the_scheduler_explains_is_shown_as_it_is():
    stages = [
        NodeStage("nodes", 1000),
        NodeStage("match the selector and affinity", 400),
        NodeStage("have 8 nvidia.com/gpu", 12, {"Insufficient nvidia.com/gpu": 388}),
        NodeStage("have it free", 0, {"Insufficient nvidia.com/gpu": 12}),
    ]
    queue = QueueStanding("default", "Open", 3, 4, ["urgent", "old"])
    why = Why("fit", "Insufficient", "predicates", "no room")
    answer = an_answer(Explanation(why, "", [TaskNodes("worker", 2, 2, 2, stages, 12, 0)], queue))

    text = rendered(explain(JobFacts(a_job(), a_group(), simulation=answer)))

    assert text.splitlines() == [
        "default/demo is Pending: will run later",
        "  why    no room (stage: fit, plugin: predicates)",
        "  nodes  task worker (2 of 2 to place): 1000 nodes → 400 match the selector and affinity"
        " → 12 have 8 nvidia.com/gpu → 0 have it free",
        "         12 × Insufficient nvidia.com/gpu",
        "  queue  default (Open): 3 of 4 waiting; ahead: urgent, old",
    ]


def test_a_job_that_the_scheduler_never_places_is_shown_as_such():
    answer = an_answer(Explanation(Why("gang", "x"), "task worker needs 20 pods at once"))

    found = explain(JobFacts(a_job(), a_group(), simulation=answer))

    assert (found.verdict, found.never_because) == (NEVER, "task worker needs 20 pods at once")
    assert "never  task worker needs 20 pods at once" in rendered(found)


def test_a_job_that_is_not_enqueued_yet_says_so():
    found = explain(JobFacts(a_job(), a_group(phase="Pending")))

    assert (found.stage, found.verdict) == ("enqueue", LATER)


def test_a_job_whose_pods_are_all_placed_is_blocked_by_nothing():
    found = explain(JobFacts(a_job(), a_group(phase="Running"), [a_pod("n"), a_pod("n")]))

    assert found.verdict == NOTHING


def test_an_explanation_is_json():
    found = explain(JobFacts(a_job(), a_group(why=Why("fit", "x", counts={"Insufficient cpu": 3}))))

    assert msgspec.json.decode(msgspec.json.encode(found))["counts"] == {"Insufficient cpu": 3}


def test_a_gang_that_runs_says_why_its_further_pods_wait():
    message = "0/1 nodes are unavailable: 1 Insufficient cpu."
    waiting = a_pod("", [{"type": "PodScheduled", "status": "False", "message": message}])

    assert explain(JobFacts(a_job(phase="Running"), a_group(phase="Running"), [waiting])).reason == message


def test_the_api_servers_refusal_of_pods_is_shown():
    message = "Failed to create Pod default/demo-worker-0: no PriorityClass with name nope was found"
    event = {"metadata": {}, "reason": "FailedCreate", "message": message, "lastTimestamp": "2026-01-01T00:00:00Z"}

    found = explain(JobFacts(a_job(), a_group(), events=[event]))

    assert (found.stage, found.reason) == ("admission", message)


# -- what the scheduler would do next -------------------------------------------------------------------------------
def test_pods_that_the_scheduler_would_preempt_for_the_job_are_named():
    evictions = [
        SimulatedEviction("default/low-other", "n1", "preempt", "default/demo-worker-0"),
        SimulatedEviction("default/elsewhere", "n2", "preempt", "default/third"),
    ]
    pods = {"demo_worker_0": SimulatedPod(waits_for="n1"), "demo_worker_1": SimulatedPod(reason="Pending")}
    answer = an_answer(Explanation(Why("wait", "x")), evictions, **pods)

    found = explain(JobFacts(a_job(), a_group(), simulation=answer))

    assert found.would_preempt == ["default/low-other"]
    assert "next   the scheduler would preempt default/low-other" in rendered(found)


def test_pods_that_leave_a_node_for_the_job_are_named():
    explanation = Explanation(Why("wait", "x"), waits_for={"n1": ["default/low-other"]})
    answer = an_answer(explanation, demo_worker_0=SimulatedPod(waits_for="n1"))

    found = explain(JobFacts(a_job(), a_group(), simulation=answer))

    assert "room on n1 is promised to it, it waits until default/low-other ended" in rendered(found)
