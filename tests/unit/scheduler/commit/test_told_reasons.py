"""Texts about waiting jobs in the words of their explanations; what clients read by stays as it was."""

from volcano.api.jobs.why import FIT, Why
from volcano.api.scheduling import PodGroupCondition
from volcano.api.why.reasons import finding
from volcano.scheduler.commit.told_reasons import ToldReasons, with_reasons
from volcano.scheduler.core.snapshot import Snapshot
from volcano.scheduler.framework.decisions import Decisions, GroupStatus, PodNotice
from volcano.scheduler.framework.record import Note

FOUND = finding("NoNodeHasLabel", term="pool=gpu", meant="")
TOLD = ToldReasons({"ns/g": FOUND}, frozenset({"ns/g"}))
COUNTED = "2/3 tasks in gang unschedulable: pod group is not ready"


def decided(**more) -> Decisions:
    condition = PodGroupCondition("Unschedulable", "True", reason="NotEnoughResources", message=COUNTED)
    group = GroupStatus("Inqueue", 0, 0, 0, (condition,))
    return Decisions(groups={"ns/g": group, "ns/h": group}, why={"ns/g": Why(FIT, "c"), "ns/h": Why(FIT, "c")}, **more)


def test_a_condition_keeps_type_reason_and_count_and_gets_the_text():
    told = with_reasons(decided(), TOLD, Snapshot())

    (condition,) = told.groups["ns/g"].conditions
    assert (condition.type, condition.reason) == ("Unschedulable", "NotEnoughResources")
    assert condition.message == "2/3 tasks in gang unschedulable: no node has pool=gpu"
    assert (told.why["ns/g"].reason, str(told.why["ns/g"])) == ("NoNodeHasLabel", "no node has pool=gpu")
    assert told.groups["ns/h"].conditions[0].message == COUNTED


def test_a_pod_that_has_been_found_a_node_is_told_which_after_the_reason():
    own = "Pod ns/a can possibly be assigned to n1, once minAvailable is satisfied"
    pods = (
        PodNotice("ns/a", "a", "Schedulable", own, job="ns/g"),
        PodNotice("ns/b", "b", "Unschedulable", "0/1 nodes are unavailable", job="ns/g"),
        PodNotice("ns/c", "c", "Unschedulable", "0/1 nodes are unavailable", job="ns/h"),
    )

    told = with_reasons(decided(pods=pods), TOLD, Snapshot())

    assert [notice.message for notice in told.pods] == [
        f"no node has pool=gpu; {own}",
        "no node has pool=gpu",
        "0/1 nodes are unavailable",
    ]


def test_of_the_events_about_a_refusal_the_warning_with_the_reason_stays():
    notes = (
        Note("ns/g", "Unschedulable", "queue resource quota insufficient: insufficient cpu"),
        Note("ns/g", "Unschedulable", "0/0 tasks in gang unschedulable: pod group is not ready", "Warning"),
        Note("ns/h", "Unschedulable", "queue resource quota insufficient: insufficient cpu"),
    )

    told = with_reasons(decided(notes=notes), TOLD, Snapshot())

    assert [(note.job, note.message) for note in told.notes] == [
        ("ns/g", "no node has pool=gpu"),
        ("ns/h", "queue resource quota insufficient: insufficient cpu"),
    ]


def test_a_group_without_a_condition_gets_one():
    decisions = Decisions(groups={"ns/g": GroupStatus("Pending", 0, 0, 0)}, why={"ns/g": Why(FIT, "c")})

    told = with_reasons(decisions, TOLD, Snapshot())

    (condition,) = told.groups["ns/g"].conditions
    assert (condition.type, condition.status, condition.reason, condition.message) == (
        "Unschedulable",
        "True",
        "NotEnoughResources",
        "no node has pool=gpu",
    )
