"""Decisions become plans: each bind for itself, statuses only when they are news."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from volcano.api.jobs.reservations import RESERVATION_ANNOTATION, StartReservation, encode_reservation
from volcano.api.jobs.why import FIT, GANG, QUOTA, Why
from volcano.api.meta import Key
from volcano.api.scheduling import PodGroupCondition
from volcano.machinery.plan import Bind as BindStep
from volcano.machinery.plan import Patch
from volcano.scheduler.commit import Committer, Unwritten, quantities_from
from volcano.scheduler.core.assemble import snapshot_from
from volcano.scheduler.framework.decisions import Decisions, GroupStatus, PodNotice
from volcano.scheduler.framework.record import BindDecision, EvictionDecision, Note, VolumeChoice
from volcano.scheduler.model import Resources

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = NOW + timedelta(seconds=3)
MUCH_LATER = NOW + timedelta(seconds=11)
WHY = "scheduling.volcano.sh/why"


def snapshot(**changes: Any):
    group = {
        "metadata": {
            "name": "g",
            "namespace": "ns",
            "uid": "group",
            "annotations": changes.get("annotations", {}),
            **({"creationTimestamp": changes["created"].isoformat()} if "created" in changes else {}),
        },
        "spec": {"minMember": 1, "queue": "q"},
        "status": changes.get("status", {"phase": "Inqueue"}),
    }
    pod = {
        "metadata": {
            "name": "p",
            "namespace": "ns",
            "uid": "u",
            "annotations": {"scheduling.k8s.io/group-name": "g"},
        },
        "spec": {"containers": [], "schedulingGates": changes.get("gates", [])},
        "status": {"phase": "Pending", "conditions": changes.get("conditions", [])},
    }
    claim = {"metadata": {"name": "c", "namespace": "ns", "uid": "claim"}}
    queue = {"metadata": {"name": "q"}, "status": {"state": "Open", "allocated": changes.get("allocated")}}
    return snapshot_from(
        {"podGroups": [group], "pods": [pod], "queues": [queue], "persistentVolumeClaims": [claim]}, now=NOW
    )


def waiting(phase: str = "Inqueue", why: Why | None = None, **more: Any) -> Decisions:
    status = GroupStatus(phase, more.pop("running", 0), 0, 0, tuple(more.pop("conditions", ())))
    return Decisions(groups={"ns/g": status}, why={"ns/g": why} if why else {}, **more)


# -- binds and evictions ----------------------------------------------------------------------------------------------
def test_a_bind_is_sent_with_what_plugins_noted_for_the_pod():
    decisions = Decisions(binds=(BindDecision("ns/p", "u", "n1", "ns/g", {"a": "b"}),))

    (binding,) = Committer().commitment(decisions, snapshot(), NOW).binds

    step, record = binding.bind
    assert isinstance(step, BindStep)
    assert (step.pod.key, step.pod.uid, step.node, step.annotations) == (Key("ns", "p"), "u", "n1", {"a": "b"})
    assert record.message == "Successfully assigned ns/p to n1"


def test_what_the_plan_check_dropped_is_not_sent():
    decisions = Decisions(
        binds=(BindDecision("ns/p", "u", "n1", "ns/g", {}),),
        evictions=(EvictionDecision("ns/p", "u", "n1", "ns/g", "preempt"),),
        dropped={"ns/p": "no room"},
    )

    commitment = Committer().commitment(decisions, snapshot(), NOW)

    assert (commitment.binds, commitment.evictions) == ((), ())


def test_claims_are_given_their_volume_or_their_node_before_the_bind():
    choices = (VolumeChoice(Key("ns", "c"), "n1", "pv1"), VolumeChoice(Key("ns", "c"), "n1"))
    decisions = Decisions(binds=(BindDecision("ns/p", "u", "n1", "ns/g", {}),), volumes={"u": choices})

    (binding,) = Committer().commitment(decisions, snapshot(), NOW).binds

    volume, claim = binding.prepare
    assert volume.target.key == Key("", "pv1")
    assert volume.body["spec"]["claimRef"]["uid"] == "claim"
    assert claim.body["metadata"]["annotations"] == {"volume.kubernetes.io/selected-node": "n1"}


def test_an_eviction_says_why_before_it_ends_the_pod():
    decisions = Decisions(evictions=(EvictionDecision("ns/p", "u", "n1", "ns/g", "preempt", "ns/q"),))

    (evicting,) = Committer("mine").commitment(decisions, snapshot(), NOW).evictions

    *said, status = evicting.announce
    assert [record.message for record in said] == [
        "Pod is evicted, because of preempt, to make room for ns/q",
        "preempt",
    ]
    conditions = {condition["type"]: condition for condition in status.body["status"]["conditions"]}
    assert conditions["Ready"]["reason"] == "Evict"
    assert conditions["DisruptionTarget"]["message"].startswith("mine: preempting")
    assert evicting.uid == status.target.uid == "u"


# -- PodGroups --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("age", "binds", "is_said"),
    [(1, 0, False), (3, 0, True), (3, 5, False), (19, 5, False), (21, 5, True)],
)
def test_a_gang_whose_pods_are_still_being_created_is_not_called_incomplete(age, binds, is_said):
    """For longer while others' pods are bound: the controller is at work, with many jobs to serve."""
    committer, incomplete = Committer(), Why(GANG, "NotEnoughTasks")
    bound = Decisions(binds=tuple(BindDecision("ns/p", "u", "n1", "ns/g", {}) for _ in range(binds)))
    committer.commitment(bound, snapshot(), NOW - timedelta(seconds=1))
    notes = (Note("ns/g", "Unschedulable", "0/1 tasks in gang unschedulable", "Warning"),)

    made = committer.commitment(
        waiting(why=incomplete, notes=notes), snapshot(created=NOW - timedelta(seconds=age)), NOW
    )

    assert (bool(made.groups), bool(made.records)) == (is_said, is_said)
    assert made.postponed is not is_said


def test_status_and_reason_are_one_patch():
    patch = Committer().commitment(waiting("Pending", Why(FIT, "no room")), snapshot(), NOW).groups["ns/g"]

    assert patch.subresource == ""
    assert patch.body["status"] == {"phase": "Pending"}
    assert json.loads(patch.body["metadata"]["annotations"][WHY])["cause"] == "no room"


def test_a_status_that_is_already_said_is_not_written():
    assert Committer().commitment(waiting(), snapshot(), NOW).groups == {}


@pytest.mark.parametrize(
    ("first", "second", "after", "written"),
    [
        (Why(FIT, "no room", numbers={"n": 1}), Why(FIT, "no room", numbers={"n": 2}), LATER, False),
        (Why(FIT, "no room", numbers={"n": 1}), Why(FIT, "no room", numbers={"n": 2}), MUCH_LATER, True),
        (Why(FIT, "no room"), Why(FIT, "no ports"), LATER, True),
        (Why(FIT, "no room"), Why(QUOTA, "no room"), LATER, True),
        (Why(FIT, "no room"), None, LATER, True),
    ],
)
def test_numbers_wait_and_causes_do_not(first, second, after, written):
    committer = Committer()
    told = committer.commitment(waiting(why=first), snapshot(), NOW).groups["ns/g"]
    shown = snapshot(annotations=told.body["metadata"]["annotations"])

    assert ("ns/g" in committer.commitment(waiting(why=second), shown, after).groups) is written


def test_a_reason_that_is_over_is_taken_away():
    before = snapshot(annotations={WHY: '{"stage":"fit","cause":"x"}'})

    patch = Committer().commitment(waiting(), before, NOW).groups["ns/g"]

    assert patch.body == {"metadata": {"annotations": {WHY: None}}}


def test_a_condition_that_says_the_same_keeps_its_time_and_is_not_written():
    said = {"type": "Unschedulable", "status": "True", "reason": "r", "message": "m", "transitionID": "1"}
    before = snapshot(status={"phase": "Inqueue", "conditions": [said]})
    again = PodGroupCondition(type="Unschedulable", status="True", reason="r", message="m", transition_id="2")

    assert Committer().commitment(waiting(conditions=[again]), before, NOW).groups == {}


def test_a_new_condition_gets_the_time_it_was_said():
    condition = PodGroupCondition(type="Scheduled", status="True", reason="r", transition_id="7")

    patch = Committer().commitment(waiting(conditions=[condition]), snapshot(), NOW).groups["ns/g"]

    (written,) = patch.body["status"]["conditions"]
    assert written["lastTransitionTime"] == "2026-01-01T00:00:00Z"
    assert written["transitionID"] == "7"


def test_a_group_that_is_being_written_waits_and_one_that_is_no_object_is_never_written():
    decisions = waiting("Running")

    busy = Committer().commitment(decisions, snapshot(), NOW, in_flight=frozenset({"ns/g"}))
    virtual = Committer().commitment(decisions, snapshot(), NOW, is_virtual=frozenset({"ns/g"}))

    assert (busy.groups, virtual.groups) == ({}, {})


def test_words_that_had_to_wait_are_said_when_it_is_time():
    said = {"type": "Unschedulable", "status": "True", "reason": "r", "message": "2 of 3", "transitionID": "1"}
    shown = snapshot(status={"phase": "Inqueue", "conditions": [said]})
    committer = Committer()
    changed = PodGroupCondition(type="Unschedulable", status="True", reason="r", message="1 of 3")
    decisions = waiting(conditions=[changed])
    committer.commitment(waiting(running=1), shown, NOW)

    early = committer.commitment(decisions, shown, LATER).groups
    late = committer.commitment(decisions, shown, MUCH_LATER).groups

    assert (len(early), len(late)) == (0, 1)


@pytest.mark.parametrize(
    ("binds", "after", "written"), [(1, LATER, True), (1000, LATER, False), (1000, MUCH_LATER, True)]
)
def test_what_merely_follows_gives_way_to_many_binds(binds, after, written):
    committer = Committer()
    many = Decisions(binds=tuple(BindDecision("ns/p", "u", "n1", "ns/g", {}) for _ in range(binds)))
    committer.commitment(many, snapshot(), NOW)

    commitment = committer.commitment(waiting("Running", running=1), snapshot(), after)

    assert ("ns/g" in commitment.groups) is written
    assert written or commitment.postponed


# -- pods -------------------------------------------------------------------------------------------------------------
def notice(message: str = "m", reason: str = "Unschedulable", node: str = "") -> Decisions:
    return Decisions(pods=(PodNotice("ns/p", "u", reason, message, node),))


def test_a_pod_is_told_why_it_waits_once():
    committer = Committer()

    first = committer.commitment(notice(), snapshot(), NOW)
    second = committer.commitment(notice(), snapshot(), MUCH_LATER)

    (patch,) = first.others
    assert isinstance(patch, Patch)
    assert patch.subresource == "status"
    (condition,) = patch.body["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["message"]) == ("PodScheduled", "False", "m")
    assert [record.reason for record in first.records] == ["FailedScheduling"]
    assert second.others == ()


@pytest.mark.parametrize(
    ("decisions", "after", "said"),
    [
        (notice("other words"), LATER, 0),
        (notice("other words"), MUCH_LATER, 1),
        (notice(reason="Schedulable"), LATER, 1),
        (notice(node="n1"), LATER, 1),
    ],
)
def test_other_words_wait_another_reason_or_node_does_not(decisions, after, said):
    committer = Committer()
    committer.commitment(notice(), snapshot(), NOW)

    assert len(committer.commitment(decisions, snapshot(), after).others) == said


def test_what_the_pod_already_says_is_not_said_again_by_a_new_scheduler():
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "m"}

    assert Committer().commitment(notice(), snapshot(conditions=[condition]), NOW).others == ()


def test_a_notice_that_could_not_be_written_is_said_again():
    committer = Committer()
    committer.commitment(notice(), snapshot(), NOW)

    committer.mark_unwritten(Unwritten(pod_uid="u"))

    assert len(committer.commitment(notice(), snapshot(), LATER).others) == 1


# -- queues, gates, events --------------------------------------------------------------------------------------------
def test_what_a_queue_holds_is_written_when_it_changed():
    held = Resources({"cpu": 1500.0, "memory": float(2**31), "pods": 2.0, "nvidia.com/gpu": 1000.0})
    decisions = Decisions(queue_allocated={"q": held})

    (patch,) = Committer().commitment(decisions, snapshot(), NOW).others
    shown = snapshot(allocated={"cpu": "1500m", "memory": "2048Mi", "pods": "2", "nvidia.com/gpu": "1"})

    assert patch.body["status"]["allocated"] == {"cpu": "1500m", "memory": "2Gi", "pods": "2", "nvidia.com/gpu": "1"}
    assert Committer().commitment(decisions, shown, NOW).others == ()


def test_amounts_are_written_as_quantities():
    assert quantities_from(Resources({"cpu": 0.0, "memory": 4096.0, "ephemeral-storage": 5000.0})) == {
        "cpu": "0",
        "memory": "4Ki",
        "ephemeral-storage": "5",
    }


def test_only_our_own_gate_is_removed():
    gate = "scheduling.volcano.sh/queue-allocation-gate"
    decisions = Decisions(gates_to_remove=("ns/p",))

    ours = Committer().commitment(decisions, snapshot(gates=[{"name": gate}]), NOW).others
    others = Committer().commitment(decisions, snapshot(gates=[{"name": gate}, {"name": "x"}]), NOW).others

    assert ours[0].body == {"spec": {"schedulingGates": [{"$patch": "delete", "name": gate}]}}
    assert others == ()


def test_the_same_thing_is_not_told_about_a_group_over_and_over():
    committer = Committer()
    decisions = waiting(why=Why(FIT, "x"), notes=(Note("ns/g", "Unschedulable", "m", "Warning"),))

    told = [len(committer.commitment(decisions, snapshot(), at).records) for at in (NOW, LATER, MUCH_LATER)]

    assert told == [1, 0, 0]


def test_a_commitment_reads_the_snapshot_and_leaves_it_alone():
    before = snapshot()
    encoded = msgspec.json.encode(before.tasks["u"].pod)

    Committer().commitment(notice(), before, NOW)

    assert msgspec.json.encode(before.tasks["u"].pod) == encoded


# -- reservations -----------------------------------------------------------------------------------------------------
def reserved(minutes: int = 10) -> StartReservation:
    return StartReservation(NOW + timedelta(minutes=minutes), tuple(f"n{index:03d}" for index in range(100)), 100)


def test_a_reservation_is_written_once_and_bounded():
    decisions = waiting(reservations={"ns/g": reserved()})

    patch = Committer().commitment(decisions, snapshot(), NOW).groups["ns/g"]
    text = patch.body["metadata"]["annotations"][RESERVATION_ANNOTATION]
    again = Committer().commitment(decisions, snapshot(annotations={RESERVATION_ANNOTATION: text}), NOW)

    assert len(json.loads(text)["nodes"]) == 64
    assert json.loads(text)["nodeCount"] == 100
    assert again.groups == {}


def test_a_reservation_that_is_gone_or_cannot_be_read_is_removed():
    for text in (encode_reservation(reserved()), "nonsense"):
        commitment = Committer().commitment(waiting(), snapshot(annotations={RESERVATION_ANNOTATION: text}), NOW)

        assert commitment.groups["ns/g"].body["metadata"]["annotations"] == {RESERVATION_ANNOTATION: None}


def test_a_reservation_that_moves_is_written_at_intervals_only():
    committer, before = Committer(), {RESERVATION_ANNOTATION: encode_reservation(reserved(5))}
    committer.commitment(waiting(reservations={"ns/g": reserved(6)}), snapshot(annotations=before), NOW)

    soon = committer.commitment(waiting(reservations={"ns/g": reserved(7)}), snapshot(annotations=before), LATER)
    later = committer.commitment(waiting(reservations={"ns/g": reserved(7)}), snapshot(annotations=before), MUCH_LATER)

    assert (len(soon.groups), len(later.groups)) == (0, 1)
