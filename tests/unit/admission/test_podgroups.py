"""/podgroups/mutate and /podgroups/validate."""

import pytest
from admission_builders import a_queue, a_world, refusal, review

BOTH = {"highestTierAllowed": 1, "highestTierName": "rack"}


def a_group(**spec):
    return {"kind": "PodGroup", "metadata": {"name": "g", "namespace": "ns"}, "spec": {"minMember": 1, **spec}}


def a_namespaced_world(queue="research"):
    space = {"name": "ns", "annotations": {"scheduling.volcano.sh/queue-name": queue}}
    return a_world(a_queue("research", "Open"), a_queue("other", "Open"), namespaces=[space])


@pytest.mark.parametrize("spec", [{}, {"queue": "default"}])
def test_a_group_in_the_default_queue_goes_where_its_namespace_says(spec):
    assert review(a_group(**spec), world=a_namespaced_world()).object["spec"]["queue"] == "research"


def test_a_group_that_names_its_queue_stays_there():
    assert review(a_group(queue="other"), world=a_namespaced_world()).object["spec"]["queue"] == "other"


def test_a_namespace_that_says_nothing_or_is_unknown_changes_nothing():
    silent = a_world(namespaces=[{"name": "ns"}])

    assert review(a_group(queue="default"), world=silent).object["spec"]["queue"] == "default"
    assert review(a_group(queue="default")).object["spec"]["queue"] == "default"


def test_a_queue_must_exist():
    assert "queue ghost does not exist" in refusal(a_group(queue="ghost"))


@pytest.mark.parametrize("state", ["", "Closed", "Closing", "Unknown"])
def test_a_queue_must_be_open(state):
    assert "state `Open`" in refusal(a_group(queue="q"), world=a_world(a_queue("q", state)))


def test_an_empty_queue_is_accepted():
    assert refusal(a_group(queue="")) == ""


def test_a_tier_is_given_one_way():
    assert "simultaneously" in refusal(a_group(queue="default", networkTopology=BOTH))
    assert refusal(a_group(queue="default", networkTopology={"highestTierAllowed": 1})) == ""
    assert refusal(a_group(queue="default", networkTopology={"highestTierName": "rack"})) == ""


def test_the_first_sub_group_with_both_is_named():
    policies = [{"name": "fine"}, {"name": "bad", "networkTopology": BOTH}, {"name": "worse", "networkTopology": BOTH}]

    message = refusal(a_group(queue="default", subGroupPolicy=policies))

    assert "bad" in message
    assert "worse" not in message


def test_all_problems_are_told():
    message = refusal(a_group(queue="ghost", networkTopology=BOTH))

    assert "ghost" in message
    assert "; " in message
    assert "simultaneously" in message


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"minTaskMember": {"worker": -1}}, "spec.minTaskMember[worker]: Invalid value: -1"),
        ({"minResources": {"cpu": "-2"}}, 'spec.minResources[cpu]: Invalid value: "-2"'),
        ({"minResources": {"memory": -1}}, "spec.minResources[memory]"),
    ],
)
def test_minimums_are_not_negative(spec, reason):
    assert reason in refusal(a_group(**spec))
    assert refusal(a_group(minTaskMember={"worker": 0}, minResources={"cpu": "0"})) == ""


@pytest.mark.parametrize("text", ["1e999999999", "9" * 1000, "much", ""])
def test_minimums_that_are_no_amounts_are_refused_as_those_of_a_queue_are(text):
    assert f'spec.minResources[cpu]: Invalid value: "{text[:100]}": quantities must match' in refusal(
        a_group(minResources={"cpu": text})
    )


@pytest.mark.parametrize("text", ["-1m", "soon", "99999h"])
def test_an_estimate_on_a_group_is_checked_as_that_of_a_job_is(text):
    group = a_group(queue="default")
    group["metadata"]["annotations"] = {"volcano.sh/running-estimate": text}

    assert f'metadata.annotations[volcano.sh/running-estimate]: Invalid value: "{text}"' in refusal(group)
