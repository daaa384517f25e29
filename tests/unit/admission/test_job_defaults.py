"""/jobs/mutate."""

from admission_builders import a_job, a_task, a_template, a_world, refusal, review

from volcano.admission.chain import BY_PATH, AdmissionChain
from volcano.admission.review import Settings
from volcano.machinery.admission import CREATE, Attributes


def bare_job(*tasks, **spec):
    return {"kind": "Job", "metadata": {"name": "job", "namespace": "ns"}, "spec": {"tasks": list(tasks), **spec}}


def defaulted(job, **how):
    outcome = review(job, **how)
    assert outcome.is_allowed, outcome.denial
    return outcome.object["spec"]


def test_a_job_that_says_nothing_gets_queue_scheduler_retries_and_gang_size():
    spec = defaulted(bare_job({"replicas": 2, "template": a_template()}, {"replicas": 3, "template": a_template()}))

    assert (spec["queue"], spec["schedulerName"], spec["maxRetry"], spec["minAvailable"]) == (
        "default",
        "volcano",
        3,
        5,
    )
    assert [task["name"] for task in spec["tasks"]] == ["default0", "default1"]
    assert [task["minAvailable"] for task in spec["tasks"]] == [2, 3]
    assert [task["maxRetry"] for task in spec["tasks"]] == [3, 3]


def test_what_the_job_says_stays():
    job = a_job(a_task("a", 4, minAvailable=2, maxRetry=7), minAvailable=1, maxRetry=5, schedulerName="other")

    spec = defaulted(job)

    assert spec == job["spec"]


def test_the_first_configured_scheduler_is_the_default():
    spec = defaulted(
        bare_job({"replicas": 1, "template": a_template()}), settings=Settings(scheduler_names=("mine", "b"))
    )

    assert spec["schedulerName"] == "mine"


def test_zero_counts_as_unset():
    spec = defaulted(
        bare_job({"name": "t", "replicas": 2, "template": a_template(), "maxRetry": 0}, minAvailable=0, maxRetry=0)
    )

    assert (spec["minAvailable"], spec["maxRetry"], spec["tasks"][0]["maxRetry"]) == (2, 3, 3)


def test_an_explicit_zero_for_a_task_stays_zero():
    spec = defaulted(bare_job({"name": "t", "replicas": 2, "minAvailable": 0, "template": a_template()}))

    assert spec["tasks"][0]["minAvailable"] == 0
    assert spec["minAvailable"] == 0


def test_pods_on_the_host_network_still_find_services():
    spec = defaulted(bare_job({"name": "t", "replicas": 1, "template": a_template(hostNetwork=True)}))

    assert spec["tasks"][0]["template"]["spec"]["dnsPolicy"] == "ClusterFirstWithHostNet"


def test_a_dns_policy_that_is_given_stays():
    template = a_template(hostNetwork=True, dnsPolicy="Default")

    spec = defaulted(bare_job({"name": "t", "replicas": 1, "template": template}))

    assert spec["tasks"][0]["template"]["spec"]["dnsPolicy"] == "Default"


def test_a_partitioned_task_needs_its_smallest_number_of_partitions():
    partitioned = {"totalPartitions": 3, "partitionSize": 2}

    some = defaulted(
        bare_job({"replicas": 6, "template": a_template(), "partitionPolicy": {**partitioned, "minPartitions": 2}})
    )
    none = defaulted(
        bare_job({"replicas": 6, "template": a_template(), "partitionPolicy": {**partitioned, "minPartitions": 0}})
    )

    assert some["tasks"][0]["minAvailable"] == 4
    assert none["tasks"][0]["minAvailable"] == 6


def test_frameworks_pull_in_the_plugins_they_need():
    for plugin, added in {
        "tensorflow": {"svc"},
        "pytorch": {"svc"},
        "ray": {"svc"},
        "mpi": {"svc", "ssh"},
        "env": set(),
    }.items():
        spec = defaulted(
            bare_job({"name": "master", "replicas": 1, "template": a_template()}, plugins={plugin: ["--x=1"]})
        )

        assert set(spec["plugins"]) == {plugin} | added
        assert spec["plugins"][plugin] == ["--x=1"]


def test_plugins_that_are_listed_keep_their_arguments():
    spec = defaulted(
        bare_job(
            {"name": "master", "replicas": 1, "template": a_template()},
            plugins={"mpi": [], "svc": ["--inject-hosts-env=false"]},
        )
    )

    assert spec["plugins"] == {"mpi": [], "svc": ["--inject-hosts-env=false"], "ssh": []}


def test_the_patches_come_in_the_documented_order():
    job = bare_job({"replicas": 1, "template": a_template()}, plugins={"mpi": []})
    attributes = Attributes(CREATE, BY_PATH["/jobs/mutate"].resource, object=job)

    answer = AdmissionChain().answer(BY_PATH["/jobs/mutate"], attributes, a_world())

    assert [(operation["op"], operation["path"]) for operation in answer.patch] == [
        ("add", "/spec/queue"),
        ("add", "/spec/schedulerName"),
        ("add", "/spec/maxRetry"),
        ("replace", "/spec/tasks"),
        ("add", "/spec/minAvailable"),
        ("replace", "/spec/plugins"),
    ]


def test_plugins_are_patched_even_when_nothing_changes():
    job = a_job(plugins={"env": []})
    attributes = Attributes(CREATE, BY_PATH["/jobs/mutate"].resource, object=job)

    answer = AdmissionChain().answer(BY_PATH["/jobs/mutate"], attributes, a_world())

    assert answer.patch == [{"op": "replace", "path": "/spec/plugins", "value": {"env": []}}]


def test_a_job_without_a_spec_still_gets_its_defaults_before_it_is_refused():
    assert refusal({"kind": "Job", "metadata": {"name": "j"}}) == "No task specified in job spec"


def test_unknown_fields_of_a_task_survive():
    spec = defaulted(bare_job({"replicas": 1, "template": a_template(), "fromTheFuture": {"x": 1}}))

    assert spec["tasks"][0]["fromTheFuture"] == {"x": 1}
