"""/queues/mutate and /queues/validate."""

import pytest
from admission_builders import DELETED, a_queue, a_world, refusal, review

from volcano.admission.review import Settings

HIERARCHY, WEIGHTS = "volcano.sh/hierarchy", "volcano.sh/hierarchy-weights"


def annotated(path, weights, name="q"):
    return a_queue(name, annotations={HIERARCHY: path, WEIGHTS: weights})


# -- defaults -----------------------------------------------------------------------------------------------------
def test_a_queue_that_says_nothing_may_be_reclaimed_and_weighs_one():
    outcome = review({"kind": "Queue", "metadata": {"name": "q"}})

    assert outcome.object["spec"] == {"reclaimable": True, "weight": 1}


def test_what_the_queue_says_stays():
    outcome = review(a_queue(reclaimable=False, weight=7))

    assert outcome.object["spec"] == {"reclaimable": False, "weight": 7}


def test_the_parent_is_not_defaulted():
    assert "parent" not in review(a_queue()).object["spec"]


def test_a_hierarchy_gets_its_root():
    outcome = review(annotated("sci/dev", "2/3"))

    assert outcome.object["metadata"]["annotations"] == {HIERARCHY: "root/sci/dev", WEIGHTS: "1/2/3"}


def test_a_hierarchy_that_has_its_root_stays():
    assert review(annotated("root/sci", "1/2")).object["metadata"]["annotations"][HIERARCHY] == "root/sci"


# -- the object by itself -----------------------------------------------------------------------------------------
REFUSED = {
    "negative capability": (a_queue(capability={"cpu": "-1"}), "requestBody.spec.capability[cpu]: Invalid value: \"-1\": must be greater than or equal to 0"),
    "negative deserved": (a_queue(deserved={"memory": "-1Gi"}), "requestBody.spec.deserved[memory]"),
    "negative guarantee": (a_queue(guarantee={"resource": {"cpu": "-1"}}, deserved={"cpu": "1"}), "requestBody.spec.guarantee.resource[cpu]"),
    "half a pod": (a_queue(capability={"pods": "1500m"}), "must be an integer"),
    "half a gpu": (a_queue(capability={"nvidia.com/gpu": "0.5"}), "must be an integer"),
    "guarantee over capability": (a_queue(guarantee={"resource": {"cpu": "2"}}, capability={"cpu": "1"}), "must be <= capability"),
    "guarantee over deserved": (a_queue(guarantee={"resource": {"cpu": "2"}}, deserved={"cpu": "1"}), "must be >= guarantee"),
    "deserved over capability": (a_queue(deserved={"cpu": "2"}, capability={"cpu": "1"}), "must be <= capability"),
    "a quantity that is none": (a_queue(capability={"cpu": "lots"}), "requestBody.spec.capability[cpu]"),
    "a strange state": (a_queue(state="Closing"), "requestBody.status.state"),
    "a hierarchy without weights": (annotated("root/a", ""), "must have the same length"),
    "weights without a hierarchy": (annotated("", "1/2"), "must have the same length"),
    "a hierarchy of another length": (annotated("root/a/b", "1/2"), "must have the same length"),
    "a one-part path without weights": (annotated("root", ""), "is not a number"),
    "a weight that is no number": (annotated("root/a", "1/x"), "is not a number"),
    "a weight of nothing": (annotated("root/a", "1/0"), "must be larger than 0"),
    "a negative weight": (annotated("root/a", "1/-2"), "must be larger than 0"),
    "a weight that is nan": (annotated("root/a", "1/nan"), "is not a number"),
    "a weight without bounds": (annotated("root/a", "1/1e999"), "is not a number"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_bad_queue_gets_its_error(case):
    queue, fragment = REFUSED[case]

    assert fragment in refusal(queue)


ADMITTED = {
    "guarantee within deserved within capability": a_queue(
        guarantee={"resource": {"cpu": "1"}}, deserved={"cpu": "2"}, capability={"cpu": "3"}
    ),
    "deserved of what capability does not limit": a_queue(deserved={"memory": "1Gi"}, capability={"cpu": "3"}),
    "guarantee without deserved": a_queue(
        guarantee={"resource": {"cpu": "1"}}, capability={"cpu": "2"}, reclaimable=True, priority=3
    ),
    "guarantee of what deserved leaves out": a_queue(guarantee={"resource": {"memory": "1"}}, deserved={"cpu": "3"}),
    "guarantee of what capability does not limit": a_queue(
        guarantee={"resource": {"memory": "1Gi"}}, deserved={"memory": "1Gi"}, capability={"cpu": "3"}
    ),
    "fractions of a cpu": a_queue(capability={"cpu": "0.5", "memory": "1.5Gi"}),
    "open": a_queue(state="Open"),
    "closed": a_queue(state="Closed"),
    "fractional weights": annotated("root/a", "1/0.5"),
}


@pytest.mark.parametrize("case", ADMITTED)
def test_a_good_queue_is_admitted(case):
    assert refusal(ADMITTED[case]) == ""


def test_a_hierarchy_may_not_be_put_above_another_queues():
    world = a_world(annotated("root/a/b", "1/1/1", name="low"))

    assert "low" in refusal(annotated("root/a", "1/1"), world=world)
    assert refusal(annotated("root/ab", "1/1"), world=world) == ""


def test_a_queue_is_not_below_itself():
    queue = annotated("root/a", "1/1")

    assert refusal(queue, queue, world=a_world(annotated("root/a/b", "1/1/1"))) == ""


def test_all_problems_are_told():
    message = refusal(
        a_queue(capability={"cpu": "-1"}, guarantee={"resource": {"memory": "2"}}, deserved={"memory": "1"})
    )

    assert "capability[cpu]" in message
    assert "must be >= guarantee" in message


@pytest.mark.parametrize("state", ["Closing", "Unknown"])
def test_no_plain_update_of_a_queue_that_is_closing_or_unknown(state):
    queue = a_queue(state=state)

    assert "requestBody.status.state" in refusal(queue, queue)


# -- parents ------------------------------------------------------------------------------------------------------
def test_a_parent_must_exist():
    assert "does not exist" in refusal(a_queue(parent="ghost"))


def test_nobody_is_their_own_parent():
    assert "cannot be the parent of itself" in refusal(a_queue("q", parent="q"))


def chain(length):
    return a_world(*(a_queue(f"l{i}", "Open", parent=f"l{i - 1}" if i > 1 else "root") for i in range(1, length + 1)))


def test_queues_may_be_five_deep():
    assert refusal(a_queue(parent="l4"), world=chain(4)) == ""
    assert "maximum depth of 5" in refusal(a_queue(parent="l5"), world=chain(5))


def test_the_depth_can_be_set():
    assert "maximum depth of 2" in refusal(a_queue(parent="l2"), world=chain(2), settings=Settings(max_queue_depth=2))
    assert refusal(a_queue(parent="l5"), world=chain(5), settings=Settings(max_queue_depth=6)) == ""


def test_a_cycle_of_parents_is_refused():
    world = a_world(a_queue("a", "Open", parent="b"), a_queue("b", "Open", parent="a"))

    assert "maximum depth" in refusal(a_queue("q", parent="a"), world=world)


def test_an_update_that_closes_a_cycle_is_refused():
    world = a_world(a_queue("a", "Open"), a_queue("b", "Open", parent="a"), a_queue("c", "Open", parent="b"))

    said = refusal(a_queue("a", parent="c"), old=a_queue("a"), world=world)

    assert said == "queue a cannot be below queue c, which is below queue a itself"


def test_queues_of_a_cycle_can_be_moved_out_of_it_and_deleted():
    world = a_world(a_queue("a", "Closed", parent="b"), a_queue("b", "Closed", parent="a"))

    assert refusal(a_queue("a", parent="root"), old=a_queue("a", parent="b"), world=world) == ""
    assert refusal(DELETED, old=a_queue("a", parent="b"), world=world) == ""


def test_the_root_has_no_parent_and_is_nobodys_child():
    assert refusal(a_queue("root", parent="a"), old=a_queue("root"), world=a_world(a_queue("a", "Open")))
    world = a_world(a_queue("a", "Closed", parent="root"), a_queue("root", "Open", parent="a"))
    assert refusal(DELETED, old=a_queue("a", parent="root"), world=world) == ""
    assert refusal(a_queue("root", parent=""), old=a_queue("root", parent="a"), world=world) == ""


def test_an_ancestor_that_is_missing_is_named():
    assert "queue ghost" in refusal(a_queue(parent="a"), world=a_world(a_queue("a", "Open", parent="ghost")))


def test_a_queue_with_pods_does_not_become_a_parent():
    busy = a_queue("p", "Open", allocated={"pods": "3"})

    assert "3 allocated pods" in refusal(a_queue(parent="p"), world=a_world(busy))
    assert refusal(a_queue(parent="p"), world=a_world(busy, a_queue("child", "Open", parent="p"))) == ""


def test_an_update_that_keeps_the_parent_does_not_look_at_it_again():
    old = a_queue(parent="ghost")

    assert refusal(a_queue(parent="ghost", weight=5), old) == ""


def test_an_update_that_changes_the_parent_does():
    assert "ghost" in refusal(a_queue(parent="ghost"), a_queue(parent="root"))


@pytest.mark.parametrize("parent", ["", "root"])
def test_the_root_needs_no_check(parent):
    assert refusal(a_queue(parent=parent)) == ""


# -- the root -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "change",
    [
        {"capability": {"cpu": "1"}},
        {"deserved": {"cpu": "1"}},
        {"guarantee": {"resource": {"cpu": "1"}}, "deserved": {"cpu": "1"}},
    ],
)
def test_the_resources_of_the_root_are_frozen(change):
    root = a_queue("root")

    assert "root queue cannot be changed" in refusal(a_queue("root", **change), root)
    assert refusal(a_queue("root", **change), root, settings=Settings(protects_root=False)) == ""


def test_the_root_may_change_otherwise():
    assert refusal(a_queue("root", weight=3), a_queue("root")) == ""
    assert refusal(a_queue("root", capability={"cpu": "1000m"}), a_queue("root", capability={"cpu": "1"})) == ""


# -- resources through the tree -----------------------------------------------------------------------------------
def test_a_capability_is_bounded_by_the_nearest_ancestor_that_bounds_it():
    world = a_world(
        a_queue("top", "Open", capability={"cpu": "10", "memory": "1Gi"}),
        a_queue("mid", "Open", parent="top", capability={"memory": "4Gi"}),
    )

    assert "ancestor top" in refusal(a_queue(parent="mid", capability={"cpu": "11"}), world=world)
    assert "ancestor mid" in refusal(a_queue(parent="mid", capability={"memory": "5Gi"}), world=world)
    assert (
        refusal(a_queue(parent="mid", capability={"cpu": "10", "memory": "4Gi", "nvidia.com/gpu": "8"}), world=world)
        == ""
    )


@pytest.mark.parametrize("what", ["guarantee", "deserved"])
def test_children_share_what_the_parent_has(what):
    def of(amount):
        return {"deserved": {"cpu": amount}} | (
            {"guarantee": {"resource": {"cpu": amount}}} if what == "guarantee" else {}
        )

    world = a_world(a_queue("p", "Open", **of("10")), a_queue("one", "Open", parent="p", **of("6")))

    assert f"total {what} of 11 cpu" in refusal(a_queue("two", parent="p", **of("5")), world=world)
    assert refusal(a_queue("two", parent="p", **of("4")), world=world) == ""


def test_a_parent_that_deserves_nothing_has_no_children_that_do():
    world = a_world(a_queue("p", "Open"))

    assert "total deserved" in refusal(a_queue(parent="p", deserved={"cpu": "1"}), world=world)


def test_a_guarantee_counts_as_deserved_among_parents_and_children():
    world = a_world(a_queue("p", "Open", guarantee={"resource": {"cpu": "10"}}))

    assert refusal(a_queue("child", parent="p", deserved={"cpu": "10"}), world=world) == ""
    assert refusal(a_queue("child", parent="p", guarantee={"resource": {"cpu": "4"}}), world=world) == ""
    assert "total deserved of 11 cpu" in refusal(a_queue("child", parent="p", deserved={"cpu": "11"}), world=world)


def test_an_updated_queue_counts_with_its_new_amounts_only():
    old = a_queue("one", parent="p", deserved={"cpu": "6"})
    world = a_world(
        a_queue("p", "Open", deserved={"cpu": "10"}), old, a_queue("two", "Open", parent="p", deserved={"cpu": "3"})
    )

    assert refusal(a_queue("one", parent="p", deserved={"cpu": "7"}), old, world=world) == ""
    assert "total deserved of 11 cpu" in refusal(a_queue("one", parent="p", deserved={"cpu": "8"}), old, world=world)


def test_a_parents_capability_stays_above_that_of_its_descendants():
    old = a_queue("p", capability={"cpu": "10"})
    world = a_world(
        old, a_queue("mid", "Open", parent="p"), a_queue("low", "Open", parent="mid", capability={"cpu": "8"})
    )

    assert "below the 8 of a descendant" in refusal(a_queue("p", capability={"cpu": "7"}), old, world=world)
    assert refusal(a_queue("p", capability={"cpu": "8"}), old, world=world) == ""


def test_descendants_behind_a_queue_that_sets_the_resource_do_not_matter():
    old = a_queue("p", capability={"cpu": "10"})
    world = a_world(
        old,
        a_queue("mid", "Open", parent="p", capability={"cpu": "5"}),
        a_queue("low", "Open", parent="mid", capability={"cpu": "8"}),
    )

    assert refusal(a_queue("p", capability={"cpu": "6"}), old, world=world) == ""


def test_a_parent_keeps_enough_for_its_children():
    old = a_queue("p", deserved={"cpu": "10"})
    world = a_world(old, a_queue("one", "Open", parent="p", deserved={"cpu": "6"}))

    assert "exceeds its own deserved of 5" in refusal(a_queue("p", deserved={"cpu": "5"}), old, world=world)


def test_direct_children_of_the_root_are_not_summed():
    world = a_world(a_queue("root", "Open", deserved={"cpu": "1"}))

    assert refusal(a_queue(parent="root", deserved={"cpu": "100"}), world=world) == ""


def test_counts_of_objects_are_not_shared():
    world = a_world(a_queue("p", "Open"))

    assert refusal(a_queue(parent="p", deserved={"count/jobs": "5"}), world=world) == ""


def test_an_update_that_changes_no_resources_does_not_look_through_the_tree():
    old = a_queue("p", deserved={"cpu": "1"})
    world = a_world(old, a_queue("one", "Open", parent="p", deserved={"cpu": "6"}))

    assert refusal(a_queue("p", deserved={"cpu": "1000m"}, weight=2), old, world=world) == ""


# -- deletion -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["default", "root"])
def test_the_built_in_queues_stay(name):
    assert f"`{name}` queue can not be deleted" in refusal(
        DELETED, a_queue(name), world=a_world(a_queue("root", "Open"))
    )


def test_a_queue_that_is_not_there_cannot_be_deleted():
    assert "does not exist" in refusal(DELETED, a_queue("ghost"))


def test_a_queue_with_children_cannot_be_deleted():
    world = a_world(a_queue("p", "Open"), a_queue("one", "Open", parent="p"), a_queue("two", "Open", parent="p"))

    assert "2 child queues: one, two" in refusal(DELETED, a_queue("p"), world=world)


def test_an_open_queue_can_be_deleted():
    assert refusal(DELETED, a_queue("p"), world=a_world(a_queue("p", "Open", allocated={"pods": "3"}))) == ""


def test_a_queue_with_pods_cannot_be_deleted_if_that_is_checked():
    world = a_world(a_queue("p", "Open", allocated={"pods": "3"}))

    assert "3 allocated pods" in refusal(
        DELETED, a_queue("p"), world=world, settings=Settings(checks_allocated_pods=True)
    )
