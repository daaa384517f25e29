"""The admission policies, evaluated: they refuse with the words of the webhook, and mutate alike.

They also compile in the CEL environment of Kubernetes 1.36; here a CEL library stands in, with its extra functions.
"""

import re

import pytest
from admission_builders import a_job, a_queue, a_task, a_template

from volcano.admission.policies import policy_manifests
from volcano.admission.review import CONTROLLER_USERS
from volcano.admission.submitters import FOREIGN, UNCHANGEABLE
from volcano.api.quantity import parse_quantity
from volcano.machinery.patch import json_patch

cel = pytest.importorskip("cel_expr_python.cel")
strings = pytest.importorskip("cel_expr_python.ext.ext_strings")

MANIFESTS = policy_manifests()
POLICIES = {
    manifest["metadata"]["name"]: manifest["spec"] for manifest in MANIFESTS if "Binding" not in manifest["kind"]
}
PATCH = re.compile(r"JSONPatch\{op: ('[^']*'), path: (.+?), value: ")


def environment():
    any_, int_ = cel.Type.DYN, cel.Type.INT

    def overload(name, answer, parameters, impl, *, member):
        shape = cel.Overload(id=f"test_{name}", return_type=answer, parameters=parameters, is_member=member, impl=impl)
        return cel.FunctionDecl(name, [shape])

    return cel.NewEnv(
        variables=dict.fromkeys(("object", "oldObject", "request", "namespaceObject", "variables"), any_),
        extensions=[strings.ExtStrings()],
        functions=[
            overload("quantity", int_, [cel.Type.STRING], lambda text: parse_quantity(text).milli, member=False),
            overload("isGreaterThan", cel.Type.BOOL, [int_, int_], lambda a, b: a > b, member=True),
            overload("isLessThan", cel.Type.BOOL, [int_, int_], lambda a, b: a < b, member=True),
            overload("compareTo", int_, [int_, int_], lambda a, b: (a > b) - (a < b), member=True),
            overload("asApproximateFloat", cel.Type.DOUBLE, [int_], lambda a: a / 1000, member=True),
            overload("sum", any_, [cel.Type.LIST], sum, member=True),
        ],
    )


ENVIRONMENT = environment()


def evaluate(expression, **names):
    given = {
        "object": None,
        "oldObject": None,
        "namespaceObject": None,
        "variables": {},
        "request": {"operation": "CREATE", "userInfo": {"username": CONTROLLER_USERS[0]}},
    } | names
    expression = PATCH.sub(r"{'op': \1, 'path': \2, 'value': ", expression)
    return ENVIRONMENT.compile(expression).eval(data=given).plain_value()


def refused(policy, new, old=None, *, operation=None, user="ada"):
    """The messages of all rules that do not hold."""
    spec = POLICIES[policy]
    names = {
        "object": new,
        "oldObject": old,
        "request": {"operation": operation or ("UPDATE" if old else "CREATE"), "userInfo": {"username": user}},
    }
    if not all(evaluate(condition["expression"], **names) for condition in spec.get("matchConditions", ())):
        return []
    variables = {}
    for variable in spec.get("variables", ()):
        variables[variable["name"]] = evaluate(variable["expression"], variables=variables, **names)
    verdicts = [(rule, evaluate(rule["expression"], variables=variables, **names)) for rule in spec["validations"]]
    # An error refuses too, and the server then shows the expression
    return [rule["message" if verdict is False else "expression"] for rule, verdict in verdicts if verdict is not True]


def mutated(policy, new, **names):
    spec = POLICIES[policy]
    variables = {each["name"]: evaluate(each["expression"]) for each in spec.get("variables", ())}
    for mutation in spec["mutations"]:
        new = json_patch(new, evaluate(mutation["jsonPatch"]["expression"], object=new, variables=variables, **names))
    return new


# -- the manifests ------------------------------------------------------------------------------------------------
def test_each_policy_has_its_binding_and_its_name():
    names = {manifest["kind"]: [] for manifest in MANIFESTS}
    for manifest in MANIFESTS:
        names[manifest["kind"]].append(manifest["metadata"]["name"])

    kinds = ("job", "queue", "pod", "podgroup", "hypernode", "jobflow", "cronjob", "submitter")
    mutated_kinds = (*kinds[:4], "cronjob", "jobflow", "jobtemplate")
    assert names == {
        "ValidatingAdmissionPolicy": [f"{kind}-validation-policy" for kind in kinds],
        "ValidatingAdmissionPolicyBinding": [f"{kind}-validation-policy-binding" for kind in kinds],
        "MutatingAdmissionPolicy": [f"volcano-{kind}-mutation-policy" for kind in mutated_kinds],
        "MutatingAdmissionPolicyBinding": [f"volcano-{kind}-mutation-binding" for kind in mutated_kinds],
    }


def test_bindings_deny_and_policies_fail_closed():
    for manifest in MANIFESTS:
        if manifest["kind"] == "ValidatingAdmissionPolicyBinding":
            assert manifest["spec"]["validationActions"] == ["Deny"]
            assert manifest["spec"]["policyName"] in POLICIES
        elif "Binding" not in manifest["kind"]:
            assert manifest["spec"]["failurePolicy"] == "Fail"


def test_versions_are_those_that_kubernetes_serves():
    versions = {manifest["kind"]: manifest["apiVersion"] for manifest in MANIFESTS}

    assert versions["ValidatingAdmissionPolicy"] == "admissionregistration.k8s.io/v1"
    assert versions["MutatingAdmissionPolicy"] == "admissionregistration.k8s.io/v1"
    older = {manifest["kind"]: manifest["apiVersion"] for manifest in policy_manifests("v1beta1")}
    assert (
        older["MutatingAdmissionPolicy"]
        == older["MutatingAdmissionPolicyBinding"]
        == "admissionregistration.k8s.io/v1beta1"
    )


def test_they_are_printed_as_yaml():
    from click.testing import CliRunner

    from volcano.app.manifests_command import manifests_command

    printed = CliRunner().invoke(manifests_command, ["policies"])

    assert printed.exit_code == 0
    assert printed.output.count("kind: ValidatingAdmissionPolicy\n") == 8


# -- jobs ---------------------------------------------------------------------------------------------------------
def policies(*given):
    return a_job(policies=list(given))


JOBS = {
    "No task specified in job spec": a_job(tasks=[], minAvailable=0),
    "duplicated task name": a_job(a_task("a"), a_task("a")),
    "'minAvailable' is greater than 'replicas' in task": a_job(a_task("a", 1, minAvailable=2)),
    "job 'minAvailable' should not be greater than total replicas": a_job(minAvailable=5),
    "job has too many replicas in all tasks": a_job(a_task("a", 100_001)),
    "spec.tasks[*].name": a_job(a_task("Bad_Name")),
    "spec.minAvailable should be greater than or equal to 0": a_job(minAvailable=-1),
    "spec.maxRetry should be greater than or equal to 0": a_job(maxRetry=-1),
    "spec.ttlSecondsAfterFinished should be greater than or equal to 0": a_job(ttlSecondsAfterFinished=-1),
    "spec.tasks[*].replicas should be greater than or equal to 0": a_job(a_task(replicas=-1)),
    "spec.tasks[*].minAvailable should be greater than or equal to 0": a_job(a_task(minAvailable=-1)),
    "must not specify event and exitCode simultaneously": policies(
        {"event": "PodFailed", "exitCode": 1, "action": "AbortJob"}
    ),
    "either event and exitCode should be specified": policies({"action": "AbortJob"}),
    "invalid policy event": policies({"event": "OutOfSync", "action": "AbortJob"}),
    "invalid policy action": policies({"event": "PodFailed", "action": "SyncJob"}),
    "0 is not a valid error code": policies({"exitCode": 0, "action": "AbortJob"}),
    "duplicate event": policies(
        {"event": "PodFailed", "action": "AbortJob"}, {"events": ["PodFailed"], "action": "RestartJob"}
    ),
    "duplicate exitCode": policies({"exitCode": 1, "action": "AbortJob"}, {"exitCode": 1, "action": "AbortJob"}),
    "if there's * here, no other policy should be here": policies(
        {"event": "*", "action": "AbortJob"}, {"event": "PodFailed", "action": "RestartJob"}
    ),
    "spec.runningEstimate: Invalid value: must be a duration": a_job(runningEstimate="-5m"),
    "and of at most 8784h": a_job(runningEstimate="99999h"),
    "such as 1h30m": a_job(runningEstimate="soon"),
    "mountPath is required": a_job(volumes=[{"volumeClaimName": "x"}]),
    "duplicated mountPath": a_job(
        volumes=[{"mountPath": "/a", "volumeClaimName": "x"}, {"mountPath": "/a", "volumeClaimName": "y"}]
    ),
    "either VolumeClaim or VolumeClaimName must be specified": a_job(volumes=[{"mountPath": "/a"}]),
    "job name must consist of": a_job(name="-bad"),
}


@pytest.mark.parametrize("fragment", JOBS)
def test_a_bad_job_gets_its_error(fragment):
    assert any(fragment in message for message in refused("job-validation-policy", JOBS[fragment]))


@pytest.mark.parametrize(
    "job",
    [
        a_job(),
        a_job(a_task("a", 2), a_task("b", 3), minAvailable=5),
        a_job(runningEstimate="1h30m"),
        policies({"event": "*", "action": "RestartJob"}),
        policies(
            {"events": ["PodFailed", "PodEvicted"], "action": "RestartTask"}, {"exitCode": 3, "action": "Whatever"}
        ),
        policies({"event": "PodFailed", "events": ["PodFailed"], "action": "AbortJob"}),
        a_job(volumes=[{"mountPath": "/a", "volumeClaim": {}}, {"mountPath": "/b", "volumeClaimName": "x"}]),
        {"metadata": {"generateName": "x-"}, "spec": {"tasks": [{"name": "a", "template": a_template()}]}},
    ],
)
def test_a_good_job_passes(job):
    assert refused("job-validation-policy", job) == []


def test_an_updated_job_keeps_its_tasks_and_its_queue():
    old = a_job()

    assert refused("job-validation-policy", a_job(minAvailable=0), old) == []
    assert "job updates may not add or remove tasks" in refused(
        "job-validation-policy", a_job(a_task("a"), a_task("b")), old
    )
    assert any("may not change fields other than" in m for m in refused("job-validation-policy", a_job(queue="x"), old))


def test_a_new_job_gets_defaults():
    host = {"spec": {"hostNetwork": True, "containers": []}}
    job = {
        "metadata": {"name": "j"},
        "spec": {
            "tasks": [
                {"replicas": 2},
                {"name": "b", "replicas": 5, "minAvailable": 1, "maxRetry": 9, "template": host},
            ],
            "plugins": {"mpi": ["--x"]},
        },
    }

    spec = mutated("volcano-job-mutation-policy", job)["spec"]

    assert (spec["queue"], spec["schedulerName"], spec["maxRetry"], spec["minAvailable"]) == (
        "default",
        "volcano",
        3,
        3,
    )
    assert spec["plugins"] == {"mpi": ["--x"], "svc": [], "ssh": []}
    first, second = spec["tasks"]
    assert first == {"name": "default0", "replicas": 2, "minAvailable": 2, "maxRetry": 3}
    assert (second["name"], second["minAvailable"], second["maxRetry"]) == ("b", 1, 9)
    assert second["template"]["spec"]["dnsPolicy"] == "ClusterFirstWithHostNet"


def test_what_a_job_says_stays():
    job = a_job(plugins={"svc": ["--a"], "tensorflow": []}, maxRetry=9)

    assert mutated("volcano-job-mutation-policy", job) == job


# -- queues -------------------------------------------------------------------------------------------------------
def annotated(path, weights):
    return a_queue(annotations={"volcano.sh/hierarchy": path, "volcano.sh/hierarchy-weights": weights})


@pytest.mark.parametrize(
    ("queue", "fragment"),
    [
        (a_queue(state="Closing"), "queue state"),
        (a_queue(deserved={"cpu": "2"}, capability={"cpu": "1500m"}), "must be <= capability"),
        (a_queue(guarantee={"resource": {"cpu": "2"}}, deserved={"cpu": 1}), "must be >= guarantee"),
        (a_queue(guarantee={"resource": {"cpu": "2"}}, capability={"cpu": 1}), "guarantee must be <= capability"),
        (annotated("root/a/b", "1/2"), "must have the same length"),
        (annotated("root/a", ""), "must have the same length"),
        (annotated("root", ""), "is not a number"),
        (annotated("root/a", "1/x"), "is not a number"),
        (annotated("root/a", "1/0"), "larger than 0"),
        (annotated("root/a", "1/-2"), "larger than 0"),
    ],
)
def test_a_bad_queue_gets_its_error(queue, fragment):
    assert any(fragment in message for message in refused("queue-validation-policy", queue))


@pytest.mark.parametrize(
    "queue",
    [
        a_queue(),
        a_queue(state="Open"),
        a_queue(state="Closed"),
        a_queue(
            guarantee={"resource": {"cpu": "1"}}, deserved={"cpu": "1000m", "memory": "1Gi"}, capability={"cpu": 2}
        ),
        a_queue(guarantee={"resource": {"cpu": "1"}}, capability={"cpu": "1"}),
        annotated("root/a", "1/0.5"),
    ],
)
def test_a_good_queue_passes(queue):
    assert refused("queue-validation-policy", queue) == []


def test_the_built_in_queues_cannot_be_deleted():
    for name, verdict in (("default", False), ("root", False), ("mine", True)):
        messages = refused("queue-validation-policy", None, a_queue(name), operation="DELETE")
        assert (messages == []) is verdict


def test_a_new_queue_gets_defaults():
    queue = {
        "metadata": {
            "name": "q",
            "annotations": {"volcano.sh/hierarchy": "a/b", "volcano.sh/hierarchy-weights": "2/3"},
        },
        "spec": {},
    }

    changed = mutated("volcano-queue-mutation-policy", queue)

    assert changed["spec"] == {"reclaimable": True, "weight": 1}
    assert changed["metadata"]["annotations"] == {
        "volcano.sh/hierarchy": "root/a/b",
        "volcano.sh/hierarchy-weights": "1/2/3",
    }
    assert mutated("volcano-queue-mutation-policy", changed) == changed


# -- limits of extended resources -----------------------------------------------------------------------------------
def test_a_job_that_only_requests_extended_resources_gets_the_limits():
    asked = {"requests": {"cpu": "1", "nvidia.com/gpu": 2, "example.com/fpga": "1"}}
    containers = [
        {"name": "none", "image": "i"},
        {"name": "both", "image": "i", "resources": asked},
        {"name": "one", "image": "i", "resources": {**asked, "limits": {"cpu": "2", "example.com/fpga": "1"}}},
    ]
    spec = {"tasks": [a_task("a"), a_task("b", template={"spec": {"containers": containers}})]}
    cron = {"metadata": {"name": "c"}, "spec": {"schedule": "@daily", "jobTemplate": {"spec": spec}}}

    for policy, obj, place in (
        ("volcano-job-mutation-policy", {"metadata": {"name": "j"}, "spec": spec}, ("spec",)),
        ("volcano-jobtemplate-mutation-policy", {"metadata": {"name": "t"}, "spec": spec}, ("spec",)),
        ("volcano-cronjob-mutation-policy", cron, ("spec", "jobTemplate", "spec")),
    ):
        changed = mutated(policy, obj)

        for name in place:
            changed = changed[name]
        found = changed["tasks"][1]["template"]["spec"]["containers"]
        assert "resources" not in found[0]
        assert found[1]["resources"]["limits"] == {"nvidia.com/gpu": 2, "example.com/fpga": "1"}
        assert found[2]["resources"]["limits"] == {"cpu": "2", "example.com/fpga": "1", "nvidia.com/gpu": 2}
    assert mutated("volcano-cronjob-mutation-policy", {"spec": {}}) == {"spec": {}}


# -- the rest -----------------------------------------------------------------------------------------------------
def a_pod(annotations=None, **spec):
    metadata = {"name": "p"} | ({"annotations": annotations} if annotations is not None else {})
    return {"metadata": metadata, "spec": {"schedulerName": "volcano", **spec}}


MIN, MAX = "volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable"


@pytest.mark.parametrize("value", ["0", "-1", "0%", "100%", "x", ""])
def test_a_bad_budget_gets_both_fragments(value):
    (message,) = refused("pod-validation-policy", a_pod({MIN: value}))

    assert "must be a positive integer" in message
    assert "percentage which between 1% ~ 99%" in message


@pytest.mark.parametrize("value", ["1", "10", "1%", "99%"])
def test_a_good_budget_passes(value):
    assert refused("pod-validation-policy", a_pod({MAX: value})) == []


def test_two_budgets_are_one_too_many_and_other_schedulers_are_left_alone():
    both = {MIN: "1", MAX: "1"}

    assert any("not allow configure multiple annotations" in m for m in refused("pod-validation-policy", a_pod(both)))
    assert refused("pod-validation-policy", a_pod(both, schedulerName="other")) == []
    assert refused("pod-validation-policy", a_pod()) == []


def test_pods_of_the_example_group_are_sent_to_its_nodes():
    in_group = {"volcano.sh/resource-group": "default"}
    request = {"operation": "CREATE", "namespace": "ns"}

    spec = mutated(
        "volcano-pod-mutation-policy", a_pod(in_group, schedulerName="x", nodeSelector={"a": "b"}), request=request
    )["spec"]

    assert spec["schedulerName"] == "volcano"
    assert spec["nodeSelector"] == {"a": "b", "volcano.sh/node-group": "compute"}
    assert [t["key"] for t in spec["tolerations"]] == ["volcano.sh/node-group"]


@pytest.mark.parametrize("namespace", ["volcano-system", "ns"])
def test_other_pods_are_left_alone_also_those_of_volcano_itself(namespace):
    pod = {"metadata": {"name": "p"}, "spec": {"schedulerName": "default-scheduler"}}

    assert mutated("volcano-pod-mutation-policy", pod, request={"namespace": namespace}) == pod


def test_a_podgroup_follows_its_namespace():
    space = {"metadata": {"annotations": {"scheduling.volcano.sh/queue-name": "research"}}}
    group = {"metadata": {"name": "g"}, "spec": {"queue": "default"}}

    assert mutated("volcano-podgroup-mutation-policy", group, namespaceObject=space)["spec"]["queue"] == "research"
    assert mutated("volcano-podgroup-mutation-policy", group, namespaceObject={"metadata": {}}) == group
    assert refused("podgroup-validation-policy", group) == []


def a_hypernode(*members):
    return {"metadata": {"name": "h"}, "spec": {"tier": 1, "members": list(members)}}


@pytest.mark.parametrize(
    ("node", "fragment"),
    [
        (a_hypernode(), "member must have at least one member"),
        (a_hypernode({"type": "Node"}), "exactly one of"),
        (a_hypernode({"selector": {"exactMatch": {"name": "a"}, "regexMatch": {"pattern": "b"}}}), "exactly one of"),
        (a_hypernode({"selector": {"exactMatch": {"name": ""}}}), "selector.exactMatch.name"),
        (a_hypernode({"selector": {"exactMatch": {"name": "A_"}}}), "selector.exactMatch.name"),
        (a_hypernode({"selector": {"regexMatch": {"pattern": ""}}}), "member regexMatch pattern is invalid"),
        (a_hypernode({"selector": {"regexMatch": {"pattern": "a["}}}), "member regexMatch pattern is invalid"),
        (a_hypernode({"selector": {"regexMatch": {"pattern": "(a"}}}), "regexMatch.pattern"),
    ],
)
def test_a_bad_hypernode_gets_its_error(node, fragment):
    assert any(fragment in message for message in refused("hypernode-validation-policy", node))


def test_a_good_hypernode_passes():
    node = a_hypernode(
        {"selector": {"exactMatch": {"name": "n1.x"}}},
        {"selector": {"regexMatch": {"pattern": "^n-[0-9]{2}$"}}},
        {"selector": {"labelMatch": {}}},
    )

    assert refused("hypernode-validation-policy", node) == []


def a_flow(**steps):
    return {
        "metadata": {"name": "f"},
        "spec": {"flows": [{"name": n, "dependsOn": {"targets": t}} for n, t in steps.items()]},
    }


def test_flows_need_targets_that_exist_and_are_not_themselves():
    assert refused("jobflow-validation-policy", a_flow(a=[], b=["a"])) == []
    assert refused("jobflow-validation-policy", {"metadata": {}, "spec": {}}) == []
    assert "vertex is not defined" in refused("jobflow-validation-policy", a_flow(a=["ghost"]))[0]
    assert "jobflow Flow is not DAG" in refused("jobflow-validation-policy", a_flow(a=["a"]))[0]


def test_a_job_gets_the_user_who_creates_it():
    request = {"operation": "CREATE", "userInfo": {"username": "ada"}}
    forged = {"metadata": {"name": "j", "annotations": {"volcano.sh/submitted-by": "eve", "a": "b"}}, "spec": {}}

    bare = mutated("volcano-jobflow-mutation-policy", {"metadata": {"name": "j"}, "spec": {}}, request=request)
    replaced = mutated("volcano-jobflow-mutation-policy", forged, request=request)

    assert bare["metadata"]["annotations"] == {"volcano.sh/submitted-by": "ada"}
    assert replaced["metadata"]["annotations"] == {"volcano.sh/submitted-by": "ada", "a": "b"}


def a_submitted(user):
    annotations = {"volcano.sh/submitted-by": user} if user else {}
    return {"metadata": {"name": "j", "annotations": annotations}, "spec": {}}


@pytest.mark.parametrize("named", ["eve", ""])
def test_an_update_keeps_the_submitter(named):
    ada, another = a_submitted("ada"), a_submitted(named)

    assert refused("submitter-validation-policy", ada, ada) == []
    assert refused("submitter-validation-policy", another, ada) == [UNCHANGEABLE]
    assert refused("submitter-validation-policy", another, ada, user=CONTROLLER_USERS[1]) == []


def test_nobody_is_named_as_submitter_by_another():
    long = "u" * 600

    assert refused("submitter-validation-policy", a_submitted("ada")) == []
    assert refused("submitter-validation-policy", a_submitted("")) == []
    assert refused("submitter-validation-policy", a_submitted("eve")) == [FOREIGN]
    assert refused("submitter-validation-policy", a_submitted(long[:512]), user=long) == []
    assert refused("submitter-validation-policy", a_submitted(long[:511]), user=long) == [FOREIGN]
    assert refused("submitter-validation-policy", a_submitted("ada"), user=CONTROLLER_USERS[0]) == []


def test_controllers_of_an_installation_elsewhere_are_known():
    for manifest in policy_manifests(namespace="batch"):
        for variable in manifest["spec"].get("variables", ()):
            if variable["name"] == "controllers":
                assert "system:serviceaccount:batch:volcano-controllers" in evaluate(variable["expression"])
