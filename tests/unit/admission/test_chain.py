"""The chain, its table, and what garbage does to it: nothing."""

import pytest
from admission_builders import KINDS, a_job, a_queue, a_task, a_world, review
from hypothesis import given, settings
from hypothesis import strategies as st

from volcano.admission.chain import ALL_PATHS, BY_PATH, DEFAULT_PATHS, WEBHOOKS, AdmissionChain
from volcano.admission.review import ResourceGroup, Settings
from volcano.api.scheme import find_resource_type
from volcano.machinery.admission import CREATE, DELETE, UPDATE, Attributes

TABLE = {
    "/jobs/mutate": ("mutating", "jobs", (CREATE,), "mutatejob.volcano.sh", True, True),
    "/jobs/validate": ("validating", "jobs", (CREATE, UPDATE), "validatejob.volcano.sh", True, True),
    "/cronjobs/mutate": ("mutating", "cronjobs", (CREATE,), "mutatecronjob.volcano.sh", True, False),
    "/cronjobs/validate": ("validating", "cronjobs", (CREATE, UPDATE), "validatecronjob.volcano.sh", True, False),
    "/podgroups/mutate": ("mutating", "podgroups", (CREATE,), "mutatepodgroup.volcano.sh", False, True),
    "/podgroups/validate": ("validating", "podgroups", (CREATE,), "validatepodgroup.volcano.sh", True, False),
    "/queues/mutate": ("mutating", "queues", (CREATE,), "mutatequeue.volcano.sh", True, True),
    "/queues/validate": ("validating", "queues", (CREATE, UPDATE, DELETE), "validatequeue.volcano.sh", True, True),
    "/pods/mutate": ("mutating", "pods", (CREATE,), "mutatepod.volcano.sh", False, True),
    "/pods/validate": ("validating", "pods", (CREATE,), "validatepod.volcano.sh", False, True),
    "/jobtemplates/mutate": ("mutating", "jobtemplates", (CREATE,), "mutatejobtemplate.volcano.sh", True, False),
    "/jobflows/mutate": ("mutating", "jobflows", (CREATE,), "mutatejobflow.volcano.sh", True, False),
    "/jobflows/validate": ("validating", "jobflows", (CREATE, UPDATE), "validatejob.volcano.sh", False, False),
    "/hypernodes/validate": (
        "validating",
        "hypernodes",
        (CREATE, UPDATE),
        "validatehypernodes.volcano.sh",
        True,
        False,
    ),
    "/reservations/validate": (
        "validating",
        "reservations",
        (CREATE, UPDATE),
        "validatereservation.volcano.sh",
        True,
        False,
    ),
}


def test_the_table_is_that_of_the_reference():
    found = {w.path: (w.kind, w.resource.plural, w.operations, w.name, w.in_chart, w.by_default) for w in WEBHOOKS}

    assert found == TABLE
    assert len(DEFAULT_PATHS) == 7


def test_validation_sees_what_mutation_made():
    job = {
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "ns"},
        "spec": {"tasks": [{"replicas": 2, "template": a_task()["template"]}]},
    }

    outcome = review(job)

    assert outcome.is_allowed
    assert outcome.object["spec"]["minAvailable"] == 2
    assert "minAvailable" not in job["spec"], "the object that came is left alone"


def test_a_kubernetes_job_is_none_of_our_business():
    attributes = Attributes(CREATE, find_resource_type("batch", "Job"), object={"spec": {}})

    assert AdmissionChain().review(attributes, a_world()).is_allowed


def test_subresources_are_not_reviewed():
    queue = a_queue(state="Closing")
    attributes = Attributes(UPDATE, BY_PATH["/queues/validate"].resource, object=queue, old=queue, subresource="status")

    assert AdmissionChain().review(attributes, a_world()).is_allowed


def test_only_enabled_webhooks_are_asked():
    attributes = Attributes(CREATE, BY_PATH["/jobs/validate"].resource, object=a_job(queue="ghost"))

    assert not AdmissionChain().review(attributes, a_world()).is_allowed
    assert AdmissionChain(enabled=["/queues/validate"]).review(attributes, a_world()).is_allowed


def test_the_wrong_resource_or_operation_is_denied_at_a_path():
    webhook, queues = BY_PATH["/jobs/validate"], BY_PATH["/queues/validate"].resource

    wrong_kind = AdmissionChain().answer(webhook, Attributes(CREATE, queues, object={}), a_world())
    wrong_verb = AdmissionChain().answer(webhook, Attributes(DELETE, webhook.resource), a_world())

    assert "expect resource to be jobs.batch.volcano.sh" in wrong_kind.denial
    assert "expect operation" in wrong_verb.denial


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 100)
    | st.floats(allow_nan=False)
    | st.sampled_from(["", "a", "1", "-1", "%", "default", "*"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "spec", "cpu", "key", "a/b"]), inner, max_size=3)
    ),
    max_leaves=8,
)
SHAPES = {
    "Job": [
        "tasks",
        "queue",
        "minAvailable",
        "maxRetry",
        "plugins",
        "policies",
        "volumes",
        "networkTopology",
        "schedulerName",
    ],
    "CronJob": ["schedule", "timeZone", "jobTemplate"],
    "Queue": ["weight", "capability", "deserved", "guarantee", "parent", "reclaimable"],
    "PodGroup": ["queue", "minMember", "networkTopology", "subGroupPolicy"],
    "Pod": ["schedulerName", "containers", "nodeSelector", "tolerations", "affinity", "schedulingGates"],
    "JobFlow": ["flows", "jobRetainPolicy"],
    "HyperNode": ["tier", "members"],
}
METADATA = ["name", "namespace", "annotations", "labels"]
INNER = {
    "tasks": [
        "name",
        "replicas",
        "minAvailable",
        "template",
        "policies",
        "dependsOn",
        "partitionPolicy",
        "topologyPolicy",
        "maxRetry",
    ],
    "flows": ["name", "dependsOn"],
    "members": ["type", "selector"],
    "policies": ["event", "events", "action", "exitCode"],
}


@st.composite
def garbage(draw):
    kind = draw(st.sampled_from(sorted(KINDS)))
    spec = draw(st.dictionaries(st.sampled_from(SHAPES[kind]), json_values, max_size=5))
    for name, fields in INNER.items():
        if name in SHAPES[kind] and draw(st.booleans()):
            spec[name] = draw(st.lists(st.dictionaries(st.sampled_from(fields), json_values, max_size=4), max_size=3))
    metadata = draw(st.dictionaries(st.sampled_from(METADATA), json_values, max_size=3))
    status = draw(json_values)
    return kind, draw(
        st.sampled_from([{"metadata": metadata, "spec": spec, "status": status}, spec, {"spec": spec}, metadata])
    )


EAGER = Settings(
    gates_pods=True,
    checks_allocated_pods=True,
    resource_groups=(ResourceGroup(name="a", labels={"a": "b"}, scheduler_name="s"),),
)


@settings(max_examples=600, deadline=None)
@given(garbage(), garbage(), st.sampled_from([CREATE, UPDATE, DELETE]))
def test_garbage_is_judged_and_never_raises(new, old, operation):
    kind, value = new
    world = a_world(a_queue("q", "Open", parent="default"))

    outcome = review(value, old[1], kind=kind, operation=operation, world=world, settings=EAGER)

    assert isinstance(outcome.denial, str)
    assert outcome.is_allowed == (outcome.denial == "")


@given(json_values, st.sampled_from(ALL_PATHS))
def test_any_json_can_be_sent_to_any_path(value, path):
    webhook = BY_PATH[path]
    attributes = Attributes(CREATE, webhook.resource, object=value)

    answer = AdmissionChain(EAGER).answer(webhook, attributes, a_world())

    assert all(set(operation) == {"op", "path", "value"} for operation in answer.patch)


@pytest.mark.parametrize("path", ALL_PATHS)
def test_an_object_nested_beyond_reason_is_refused_or_admitted_but_never_raises(path):
    value = deep = {}
    for _ in range(3000):
        deep["spec"] = {}
        deep = deep["spec"]
    webhook = BY_PATH[path]

    answer = AdmissionChain(EAGER).answer(webhook, Attributes(CREATE, webhook.resource, object=value), a_world())

    assert isinstance(answer.denial, str)
