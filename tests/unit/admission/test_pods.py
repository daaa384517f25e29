"""/pods/mutate and /pods/validate."""

import pytest
from admission_builders import refusal, review

from volcano.admission.pods import ConfigurationError, parse_resource_groups
from volcano.admission.review import Settings

GATE = "scheduling.volcano.sh/queue-allocation-gate"
MIN, MAX = "volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable"

CONFIGURATION = """
resourceGroups:
- resourceGroup: management
  object:
    key: namespace
    value: [mng-ns-1, mng-ns-2]
  schedulerName: default-scheduler
  tolerations:
  - {effect: NoSchedule, key: taint, operator: Exists}
  labels: {volcano.sh/nodetype: management}
  affinity: '{"nodeAffinity": {}}'
- resourceGroup: cpu
  object:
    key: annotation
    value: ["volcano.sh/resource-group: cpu"]
  schedulerName: volcano
  labels: {volcano.sh/nodetype: cpu}
- resourceGroup: gpu
  schedulerName: volcano
  affinity: 'not json'
  labels: {volcano.sh/nodetype: gpu}
- resourceGroup: strange
  object: {key: moon, value: [x]}
  schedulerName: moon
"""


def a_pod(annotations=None, namespace="ns", **spec):
    full = {"containers": [{"name": "c", "image": "i"}], "schedulerName": "volcano", **spec}
    return {
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": namespace, "annotations": annotations or {}},
        "spec": full,
    }


def configured(**more):
    return Settings(resource_groups=parse_resource_groups(CONFIGURATION), **more)


def mutated(pod, settings):
    outcome = review(pod, settings=settings)
    assert outcome.is_allowed, outcome.denial
    return outcome.object["spec"]


# -- mutation -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("settings", [Settings(), Settings(gates_pods=True), Settings(resource_groups=())])
def test_without_a_matching_configuration_a_pod_comes_out_unchanged(settings):
    pod = a_pod(
        {"volcano.sh/resource-group": "gpu"}, affinity={"nodeAffinity": {}}, tolerations=[{"operator": "Exists"}]
    )

    assert mutated(pod, settings) == pod["spec"]


def test_a_file_of_comments_counts_as_loaded_and_has_no_groups():
    assert parse_resource_groups("# resourceGroups:\n# - resourceGroup: x\n") == ()
    assert parse_resource_groups("") == ()


@pytest.mark.parametrize(
    "text", ["[1, 2]", "resourceGroups: 5", "resourceGroups: [5]", "a: [", "resourceGroups: [{labels: {a: []}}]"]
)
def test_a_file_that_makes_no_sense_is_an_error(text):
    with pytest.raises(ConfigurationError):
        parse_resource_groups(text)


def test_a_namespace_brings_its_nodes_tolerations_affinity_and_scheduler():
    spec = mutated(a_pod(namespace="mng-ns-2", nodeSelector={"a": "b"}, tolerations=[{"key": "mine"}]), configured())

    assert spec["nodeSelector"] == {"a": "b", "volcano.sh/nodetype": "management"}
    assert spec["tolerations"] == [{"key": "mine"}, {"effect": "NoSchedule", "key": "taint", "operator": "Exists"}]
    assert spec["affinity"] == {"nodeAffinity": {}}
    assert spec["schedulerName"] == "default-scheduler"


def test_an_affinity_that_is_there_stays():
    spec = mutated(a_pod(namespace="mng-ns-1", affinity={"podAffinity": {}}), configured())

    assert spec["affinity"] == {"podAffinity": {}}


def test_labels_of_the_group_win():
    spec = mutated(a_pod(namespace="mng-ns-1", nodeSelector={"volcano.sh/nodetype": "mine"}), configured())

    assert spec["nodeSelector"] == {"volcano.sh/nodetype": "management"}


def test_an_annotation_chooses_a_group():
    spec = mutated(a_pod({"volcano.sh/resource-group": "cpu"}), configured())

    assert spec["nodeSelector"] == {"volcano.sh/nodetype": "cpu"}


def test_a_group_without_a_rule_is_chosen_by_its_name_and_bad_json_is_skipped():
    spec = mutated(a_pod({"volcano.sh/resource-group": "gpu"}), configured())

    assert spec["nodeSelector"] == {"volcano.sh/nodetype": "gpu"}
    assert "affinity" not in spec


def test_the_first_group_that_matches_is_the_only_one():
    spec = mutated(a_pod({"volcano.sh/resource-group": "cpu"}, namespace="mng-ns-1"), configured())

    assert spec["nodeSelector"] == {"volcano.sh/nodetype": "management"}


def test_a_rule_of_an_unknown_kind_matches_nothing():
    assert mutated(a_pod({"volcano.sh/resource-group": "strange"}), configured())["schedulerName"] == "volcano"


def test_the_namespace_of_the_request_counts_when_the_pod_names_none():
    pod = a_pod()
    del pod["metadata"]["namespace"]

    outcome = review(pod, settings=configured(), namespace="mng-ns-1")

    assert outcome.object["spec"]["schedulerName"] == "default-scheduler"


def test_a_pod_that_asks_for_it_is_gated():
    spec = mutated(a_pod({GATE: "true"}), Settings(resource_groups=(), gates_pods=True))

    assert spec["schedulingGates"] == [{"name": GATE}]


def test_the_gate_is_added_to_others_and_never_twice():
    settings = Settings(resource_groups=(), gates_pods=True)

    assert mutated(a_pod({GATE: "true"}, schedulingGates=[{"name": "x"}]), settings)["schedulingGates"] == [
        {"name": "x"},
        {"name": GATE},
    ]
    assert mutated(a_pod({GATE: "true"}, schedulingGates=[{"name": GATE}]), settings)["schedulingGates"] == [
        {"name": GATE}
    ]


@pytest.mark.parametrize("annotations", [{}, {GATE: "false"}, {GATE: "True"}])
def test_a_pod_that_does_not_ask_is_not_gated(annotations):
    assert "schedulingGates" not in mutated(a_pod(annotations), Settings(resource_groups=(), gates_pods=True))


def test_nobody_is_gated_unless_the_feature_is_on():
    assert "schedulingGates" not in mutated(a_pod({GATE: "true"}), Settings(resource_groups=()))


# -- validation ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("key", [MIN, MAX])
@pytest.mark.parametrize(
    ("value", "fragment"),
    [
        ("0", "must be a positive integer"),
        ("-3", "must be a positive integer"),
        ("0%", "percentage which between 1% ~ 99%"),
        ("100%", "percentage which between 1% ~ 99%"),
        ("-5%", "percentage which between 1% ~ 99%"),
        ("many", "neither an integer nor a percentage"),
        ("1.5", "neither an integer nor a percentage"),
        ("%", "neither an integer nor a percentage"),
        ("", "neither an integer nor a percentage"),
    ],
)
def test_a_bad_budget_gets_its_error_and_a_notice(key, value, fragment):
    outcome = review(a_pod({key: value}))

    assert fragment in outcome.denial
    assert [notice.reason for notice in outcome.notices] == ["Admit"]


@pytest.mark.parametrize("value", ["1", "25", "1%", "99%"])
def test_a_good_budget_is_admitted(value):
    assert refusal(a_pod({MIN: value})) == ""


def test_only_one_budget_may_be_given():
    assert "not allow configure multiple annotations" in refusal(a_pod({MIN: "1", MAX: "1"}))
    assert "must be a positive integer" in refusal(a_pod({MIN: "1", MAX: "0"}))


def test_pods_of_other_schedulers_are_none_of_our_business():
    assert refusal(a_pod({MIN: "0"}, schedulerName="default-scheduler")) == ""
    assert "positive" in refusal(
        a_pod({MIN: "0"}, schedulerName="mine"), settings=Settings(scheduler_names=("a", "mine"))
    )
