"""/jobs/validate on creation."""

import pytest
from admission_builders import a_job, a_queue, a_task, a_template, a_world, refusal, review


def test_a_good_job_is_admitted_without_a_word():
    outcome = review(a_job(a_task("a", 2), a_task("b", 3), minAvailable=5))

    assert outcome.is_allowed
    assert outcome.warnings == ()


def test_a_refusal_reads_as_that_of_a_webhook():
    job = a_job()
    job["spec"]["tasks"] = []

    outcome = review(job)

    assert (
        outcome.message
        == 'admission webhook "validatejob.volcano.sh" denied the request: No task specified in job spec'
    )


def template_with(**resources):
    return a_template() | {"spec": {"containers": [{"name": "main", "image": "i", "resources": resources}]}}


def policies(*given):
    return a_job(policies=list(given))


REFUSED = {
    "a task larger than itself": (
        a_job(a_task("a", 1, minAvailable=2)), "'minAvailable' is greater than 'replicas' in task: a, job: job",
    ),
    "two tasks of a name": (a_job(a_task("a"), a_task("a")), "duplicated task name a"),
    "a gang larger than all tasks": (
        a_job(a_task("a", 2), minAvailable=3), "job 'minAvailable' should not be greater than total replicas",
    ),
    "more pods than a controller can look at": (
        a_job(a_task("a", 2**31 - 1)), "job has 2147483647 replicas in all tasks: must be less than or equal to 100000",
    ),
    "more pods in many tasks": (
        a_job(*(a_task(f"t{number}", 50_000) for number in range(3))), "job has 150000 replicas in all tasks",
    ),
    "a job name that is no name": (a_job(name="Job_"), "job name 'Job_' is invalid"),
    "a pod name that gets too long": (a_job(name="j" * 60), "must be no more than 63 bytes"),
    "an unknown plugin": (a_job(plugins={"big": []}), "unable to find job plugin: big"),
    "mpi without its master": (a_job(plugins={"mpi": []}), "the master task 'master' of job plugin mpi was not found"),
    "mpi without its renamed master": (
        a_job(a_task("master"), plugins={"mpi": ["--master=boss"]}), "the master task 'boss' of job plugin mpi was not found",
    ),
    "both tiers": (
        a_job(networkTopology={"highestTierAllowed": 1, "highestTierName": "rack"}), "must not specify 'highestTierAllowed'",
    ),
    "event and exit code": (
        policies({"event": "PodFailed", "action": "AbortJob", "exitCode": -1}),
        "must not specify event and exitCode simultaneously",
    ),
    "events and exit code": (
        policies({"events": ["PodFailed"], "action": "AbortJob", "exitCode": 3}),
        "must not specify event and exitCode simultaneously",
    ),
    "neither event nor exit code": (policies({"action": "AbortJob"}), "either event and exitCode should be specified"),
    "an internal event": (policies({"event": "OutOfSync", "action": "AbortJob"}), "invalid policy event: OutOfSync"),
    "an unknown action": (policies({"event": "PodFailed", "action": "Dance"}), "invalid policy action: Dance"),
    "an internal action": (policies({"event": "PodFailed", "action": "SyncJob"}), "invalid policy action: SyncJob"),
    "no action": (policies({"event": "PodFailed"}), "invalid policy action"),
    "an event twice": (
        policies({"event": "PodFailed", "action": "AbortJob"}, {"events": ["PodFailed"], "action": "RestartJob"}), "duplicate",
    ),
    "exit code zero": (policies({"exitCode": 0, "action": "AbortJob"}), "0 is not a valid error code"),
    "a timeout that is none": (
        policies({"event": "PodFailed", "action": "AbortJob", "timeout": "3 apples"}),
        "invalid policy timeout: time: ",
    ),
    "an exit code twice": (
        policies({"exitCode": 1, "action": "AbortJob"}, {"exitCode": 1, "action": "RestartJob"}), "duplicate exitCode 1",
    ),
    "star with company": (
        policies({"event": "*", "action": "AbortJob"}, {"event": "PodFailed", "action": "RestartJob"}),
        "if there's * here, no other policy should be here",
    ),
    "a task's bad policy": (
        a_job(a_task("a", policies=[{"event": "PodFailed", "action": "Dance"}])), "task a: invalid policy action: Dance",
    ),
    "a negative cpu request": (
        a_job(a_task(template=template_with(requests={"cpu": "-1"}))),
        "spec.tasks[0].template.spec.containers[0].resources.requests[cpu]: Invalid value: \"-1\": must be greater than or equal to 0",
    ),
    "a negative memory request": (
        a_job(a_task(template=template_with(requests={"memory": "-1"}))), "must be greater than or equal to 0",
    ),
    "requests over limits": (
        a_job(a_task(template=template_with(requests={"cpu": "2"}, limits={"cpu": "1"}))), "must be less than or equal to cpu limit of 1",
    ),
    "a template without containers": (a_job(a_task(template={"spec": {}})), "spec.tasks[0].template.spec.containers: Required value"),
    "numa without whole cpus": (
        a_job(a_task(topologyPolicy="restricted", template=template_with(requests={"cpu": "1500m"}))),
        "must be a whole number above 0",
    ),
    "numa without cpus": (a_job(a_task(topologyPolicy="best-effort")), "must be a whole number above 0"),
    "no partitions": (
        a_job(a_task(partitionPolicy={"totalPartitions": 0, "partitionSize": 1})), "'totalPartitions' must be greater than 0",
    ),
    "empty partitions": (
        a_job(a_task(partitionPolicy={"totalPartitions": 1, "partitionSize": 0})), "'partitionSize' must be greater than 0",
    ),
    "partitions that do not add up": (
        a_job(a_task("a", 5, partitionPolicy={"totalPartitions": 2, "partitionSize": 2})),
        "'replicas' is not equal to 'totalPartitions'*'partitionSize'",
    ),
    "a minimum of partitions that does not add up": (
        a_job(a_task("a", 4, minAvailable=3, partitionPolicy={"totalPartitions": 2, "partitionSize": 2, "minPartitions": 1})),
        "'minAvailable' is not equal to 'minPartitions'*'partitionSize'",
    ),
    "both tiers of a partition": (
        a_job(a_task("a", 2, partitionPolicy={
            "totalPartitions": 1, "partitionSize": 2, "networkTopology": {"highestTierAllowed": 1, "highestTierName": "x"},
        })),
        "the partitionPolicy of task a",
    ),
    "a mount path twice": (
        a_job(volumes=[{"mountPath": "/a", "volumeClaimName": "x"}, {"mountPath": "/a", "volumeClaimName": "y"}]),
        "duplicated mountPath: /a",
    ),
    "an empty mount path": (a_job(volumes=[{"mountPath": "", "volumeClaimName": "x"}]), "mountPath is required"),
    "a volume of nothing": (
        a_job(volumes=[{"mountPath": "/a"}]), "either VolumeClaim or VolumeClaimName must be specified",
    ),
    "a claim both old and new": (
        a_job(volumes=[{"mountPath": "/a", "volumeClaimName": "x", "volumeClaim": {"accessModes": ["ReadWriteOnce"]}}]), "conflict",
    ),
    "a claim name that is none": (a_job(volumes=[{"mountPath": "/a", "volumeClaimName": "X_"}]), "invalid volumeClaimName X_"),
    "a negative estimate": (a_job(runningEstimate="-5m"), 'spec.runningEstimate: Invalid value: "-5m": must be a duration above 0s'),
    "an absurd estimate": (a_job(runningEstimate="99999h"), 'spec.runningEstimate: Invalid value: "99999h"'),
    "an estimate that cannot be read": (a_job(runningEstimate="soon"), 'spec.runningEstimate: Invalid value: "soon"'),
    "a queue that is not there": (a_job(queue="ghost"), "queue ghost does not exist"),
    "a dependency on oneself": (a_job(a_task("a", dependsOn={"name": ["a"]})), "a -> a"),
    "a cycle of tasks": (
        a_job(a_task("a", dependsOn={"name": ["b"]}), a_task("b", dependsOn={"name": ["c"]}), a_task("c", dependsOn={"name": ["a"]})),
        "a -> b -> c -> a",
    ),
    "an unknown dependency": (a_job(a_task("a", dependsOn={"name": ["ghost"]})), "a depends on ghost, which does not exist"),
    "a dependency named twice": (
        a_job(a_task("a"), a_task("b", dependsOn={"name": ["a", "a"]})), "b names a twice",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_bad_job_gets_its_error(case):
    job, fragment = REFUSED[case]

    assert fragment in refusal(job)


ADMITTED = {
    "an estimate": a_job(runningEstimate="1h30m"),
    "star alone": policies({"event": "*", "action": "RestartJob"}),
    "one event twice in one policy": policies({"event": "PodFailed", "events": ["PodFailed"], "action": "AbortJob"}),
    "any action with an exit code": policies({"exitCode": 7, "action": "Whatever"}),
    "restart of a partition": policies({"event": "PodFailed", "action": "RestartPartition"}),
    "a privileged container on the host": a_job(
        a_task(template={
            "spec": {
                "hostPID": True, "hostNetwork": True,
                "containers": [{"name": "m", "image": "i", "securityContext": {"privileged": True}}],
            }
        })
    ),
    "numa with whole cpus": a_job(a_task(topologyPolicy="single-numa-node", template=template_with(requests={"cpu": "2"}))),
    "numa with limits alone": a_job(a_task(topologyPolicy="restricted", template=template_with(limits={"cpu": "2"}))),
    "numa none": a_job(a_task(topologyPolicy="none")),
    "a diamond of tasks": a_job(
        a_task("a"), a_task("b", dependsOn={"name": ["a"]}), a_task("c", dependsOn={"name": ["a"]}),
        a_task("d", dependsOn={"name": ["b", "c"], "iteration": "any"}),
    ),
    "partitions that add up": a_job(
        a_task("a", 4, minAvailable=2, partitionPolicy={"totalPartitions": 2, "partitionSize": 2, "minPartitions": 1})
    ),
    "a claim that does not exist": a_job(volumes=[{"mountPath": "/a", "volumeClaimName": "ghost"}]),
    "mpi with its master": a_job(a_task("master"), a_task("worker"), plugins={"mpi": [], "svc": [], "ssh": []}),
    "mpi with its renamed master": a_job(a_task("boss"), plugins={"mpi": ["--master=boss"], "svc": [], "ssh": []}),
    "every known plugin": a_job(
        a_task("master"), plugins={name: [] for name in ("ssh", "env", "svc", "tensorflow", "mpi", "pytorch", "hcclrank", "ray")}
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ADMITTED)
def test_a_good_job_is_admitted(case):
    assert refusal(ADMITTED[case]) == ""


def test_policy_errors_list_what_is_valid():
    message = refusal(policies({"event": "PodFailed", "action": "Dance"}))

    assert "valid events are *, PodFailed, PodEvicted" in message
    assert "valid actions are AbortJob, RestartJob" in message


def test_all_problems_are_told_in_order():
    job = a_job(a_task("a", 1, minAvailable=2), minAvailable=9, queue="ghost", plugins={"big": []})

    message = refusal(job)

    found = [message.index(part) for part in ("'replicas' in task", "total replicas", "job plugin: big", "queue ghost")]
    assert found == sorted(found)


def test_a_duplicate_task_ends_the_look_at_tasks_but_is_counted():
    job = a_job(a_task("a", 1), a_task("a", 1), a_task("c", 5), minAvailable=3)

    message = refusal(job)

    assert "duplicated task name a" in message
    assert "total replicas" in message


@pytest.mark.parametrize("state", ["", "Closed", "Closing", "Unknown"])
def test_a_queue_that_is_not_open_takes_no_jobs(state):
    assert "state `Open`" in refusal(a_job(queue="q"), world=a_world(a_queue("q", state)))


def test_an_open_queue_takes_jobs():
    assert refusal(a_job(queue="q"), world=a_world(a_queue("q", "Open"))) == ""


def test_the_root_queue_takes_no_jobs():
    assert "can not submit job to root queue" in refusal(a_job(queue="root"), world=a_world(a_queue("root", "Open")))


def test_a_queue_with_children_takes_no_jobs():
    world = a_world(a_queue("q", "Open"), a_queue("below", "Open", parent="q"))

    assert "leaf queue" in refusal(a_job(queue="q"), world=world)
    assert refusal(a_job(queue="below"), world=world) == ""


def test_an_unknown_plugin_argument_is_admitted_with_a_warning_that_names_it():
    outcome = review(a_job(plugins={"ssh": ["--no-root", "--ssh-port=2222"]}))

    assert outcome.is_allowed
    assert len(outcome.warnings) == 1
    assert "spec.plugins[ssh]" in outcome.warnings[0]
    assert "--no-root" in outcome.warnings[0]
    assert "--ssh-port=2222" in outcome.warnings[0]


def test_a_plugin_argument_of_a_bad_value_is_warned_about_too():
    outcome = review(a_job(plugins={"svc": ["--inject-hosts-env=perhaps"]}))

    assert outcome.is_allowed
    assert "inject-hosts-env" in outcome.warnings[0]


def test_a_flood_of_problems_has_an_end():
    job = a_job(
        *(a_task(f"t{i}", template={"spec": {"containers": [{"name": "A", "image": ""}] * 50}}) for i in range(60))
    )

    assert len(refusal(job)) < 40_000


def test_an_object_that_cannot_be_decoded_is_refused_with_the_reason():
    assert "cannot decode the Job" in refusal({"kind": "Job", "metadata": {"name": "j"}, "spec": {"tasks": "many"}})
