"""/jobs/validate on update."""

import copy

import pytest
from admission_builders import a_job, a_task, a_template, refusal


def changed(job, change):
    new = copy.deepcopy(job)
    change(new["spec"])
    return new


OLD = a_job(
    a_task("a", 3, policies=[{"event": "PodFailed", "action": "RestartTask", "timeout": "60s"}]),
    a_task("b", 2),
    minAvailable=4,
    volumes=[
        {
            "mountPath": "/x",
            "volumeClaim": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        }
    ],
    plugins={"svc": []},
)


def put(path, value):
    def change(spec):
        place = spec
        *above, last = path
        for part in above:
            place = place[part]
        place[last] = value

    return change


def test_nothing_changed_is_fine():
    assert refusal(copy.deepcopy(OLD), OLD) == ""


def test_replicas_may_not_grow_beyond_what_a_job_may_have():
    assert "must be less than or equal to 100000" in refusal(
        changed(OLD, put(["tasks", 0, "replicas"], 2**31 - 1)), OLD
    )


def test_a_job_that_has_too_many_pods_already_can_be_changed_and_made_smaller():
    huge = changed(OLD, put(["tasks", 0, "replicas"], 2**31 - 1))

    assert refusal(changed(huge, put(["priorityClassName"], "high")), huge) == ""
    assert refusal(changed(huge, put(["tasks", 0, "replicas"], 2**31 - 2)), huge) == ""


@pytest.mark.parametrize(
    "change",
    [
        put(["minAvailable"], 1),
        put(["priorityClassName"], "high"),
        put(["tasks", 0, "replicas"], 9),
        put(["tasks", 0, "minAvailable"], 1),
        put(["volumes", 0, "volumeClaimName"], "job-pvc-abc"),
    ],
)
def test_these_may_change(change):
    assert refusal(changed(OLD, change), OLD) == ""


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (put(["queue"], "other"), "spec.queue"),
        (put(["schedulerName"], "other"), "spec.schedulerName"),
        (put(["maxRetry"], 9), "spec.maxRetry"),
        (put(["plugins"], {"svc": [], "ssh": []}), "spec.plugins.ssh"),
        (put(["policies"], [{"event": "*", "action": "AbortJob"}]), "spec.policies"),
        (put(["tasks", 0, "name"], "z"), "spec.tasks[0].name"),
        (put(["tasks", 0, "policies", 0, "timeout"], "61s"), "spec.tasks[0].policies[0].timeout"),
        (put(["tasks", 0, "template"], a_template(hostNetwork=True)), "spec.tasks[0].template.spec.hostNetwork"),
        (put(["tasks", 0, "template", "spec", "containers", 0, "image"], "x"), "image"),
        (put(["ttlSecondsAfterFinished"], 0), "spec.ttlSecondsAfterFinished"),
        (put(["minSuccess"], 1), "spec.minSuccess"),
        (put(["volumes", 0, "mountPath"], "/y"), "spec.volumes[0].mountPath"),
        (put(["volumes"], []), "spec.volumes"),
    ],
)
def test_nothing_else_may_change(change, where):
    message = refusal(changed(OLD, change), OLD)

    assert "job updates may not change fields other than" in message
    assert where in message


def test_the_claim_name_of_an_existing_claim_may_not_change():
    old = a_job(volumes=[{"mountPath": "/x", "volumeClaimName": "one"}])

    message = refusal(changed(old, put(["volumes", 0, "volumeClaimName"], "two")), old)

    assert "job updates may not change fields other than" in message


def test_tasks_may_not_come_or_go():
    fewer = changed(OLD, lambda spec: spec["tasks"].pop())
    fewer["spec"]["minAvailable"] = 1
    more = changed(OLD, lambda spec: spec["tasks"].append(a_task("c")))

    assert refusal(fewer, OLD) == "job updates may not add or remove tasks"
    assert refusal(more, OLD) == "job updates may not add or remove tasks"


@pytest.mark.parametrize(
    ("change", "fragment"),
    [
        (put(["tasks", 0, "replicas"], -1), "'replicas' must be >= 0"),
        (put(["tasks", 0, "minAvailable"], -1), "'minAvailable' must be >= 0"),
        (put(["tasks", 0, "minAvailable"], 4), "'minAvailable' must be <= 'replicas'"),
        (put(["minAvailable"], 6), "not be greater than total replicas"),
        (put(["minAvailable"], -1), "'minAvailable' must be >= 0"),
        (put(["networkTopology"], {"highestTierAllowed": 1, "highestTierName": "x"}), "highestTierAllowed"),
        (put(["tasks", 0, "partitionPolicy"], {"totalPartitions": 2, "partitionSize": 2}), "'replicas' is not equal"),
    ],
)
def test_the_numbers_must_still_fit(change, fragment):
    assert fragment in refusal(changed(OLD, change), OLD)


def test_specs_are_compared_by_meaning():
    old = a_job(
        a_task(
            "a",
            template={"spec": {"containers": [{"name": "m", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}},
        ),
        runningEstimate="60s",
    )
    new = copy.deepcopy(old)
    new["spec"]["tasks"][0]["template"] = {
        "metadata": {"creationTimestamp": None, "labels": {}},
        "spec": {
            "containers": [
                {"name": "m", "image": "i", "env": [], "tty": False, "resources": {"requests": {"cpu": "1000m"}}}
            ],
            "volumes": None,
        },
    }
    new["spec"].update(runningEstimate="1m0s", policies=[], volumes=None)

    assert refusal(new, old) == ""


def test_metadata_may_change_freely():
    new = copy.deepcopy(OLD)
    new["metadata"].update(labels={"a": "b"}, annotations={"c": "d"}, finalizers=["x/y"])

    assert refusal(new, OLD) == ""


def test_the_queue_is_not_looked_at_again():
    old = a_job(queue="gone")

    assert refusal(changed(old, put(["minAvailable"], 0)), old) == ""


def test_no_defaults_are_given_on_update():
    old = a_job()
    new = changed(old, lambda spec: spec.pop("maxRetry"))

    assert "spec.maxRetry" in refusal(new, old)
