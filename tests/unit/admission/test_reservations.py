"""Reservations that are refused, with the field's path and the reason."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from volcano.admission.chain import AdmissionChain
from volcano.api.core import Namespace, Node
from volcano.api.decode import decode_object
from volcano.api.reservation import Reservation
from volcano.api.scheduling import Queue
from volcano.api.scheme import resource_type
from volcano.machinery.admission import CREATE, UPDATE, Attributes
from volcano.machinery.world import Mirror

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
GOOD = {"queue": "demo", "start": "2026-01-01T14:00:00Z", "duration": "2h", "nodes": ["n1"]}


def reservation(name: str, **spec: Any) -> dict[str, Any]:
    given = {key: value for key, value in {**GOOD, **spec}.items() if value is not None}
    return {"metadata": {"name": name}, "spec": given}


def world(*others: dict[str, Any]) -> Mirror:
    mirror = Mirror(lambda: NOW)
    mirror.put(decode_object(Queue, {"metadata": {"name": "demo"}}))
    mirror.put(decode_object(Namespace, {"metadata": {"name": "course"}}))
    for name in ("n1", "n2"):
        status = {"allocatable": {"cpu": "8", "memory": "16Gi"}}
        mirror.put(decode_object(Node, {"metadata": {"name": name}, "status": status}))
    for other in others:
        mirror.put(decode_object(Reservation, other))
    return mirror


def answer(new: dict[str, Any], *others: dict[str, Any], old: dict[str, Any] | None = None) -> str:
    attributes = Attributes(
        UPDATE if old is not None else CREATE,
        resource_type(Reservation),
        new["metadata"]["name"],
        object=new,
        old=old,
        at=NOW,
    )
    return AdmissionChain().review(attributes, world(*others)).denial


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"queue": None, "namespace": "course"},
        {"queue": None, "user": "alice"},
        {"queue": None, "maintenance": True},
        {"start": "2026-01-01T11:00:00Z"},
        {"start": None, "schedule": "0 14 * * 1-5", "timeZone": "Europe/Berlin"},
        {"nodes": None, "resources": {"cpu": "16"}},
        {"resources": {"cpu": "8", "memory": "1Gi"}},
    ],
)
def test_these_are_accepted(spec: dict[str, Any]) -> None:
    assert answer(reservation("new", **spec)) == ""


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"queue": None}, "spec: Required value: a queue, a namespace, a user or maintenance must be stated"),
        ({"maintenance": True}, "spec.queue: Forbidden: a maintenance window has no holder"),
        ({"queue": "nowhere"}, 'spec.queue: Not found: "nowhere"'),
        ({"namespace": "nowhere"}, 'spec.namespace: Not found: "nowhere"'),
        ({"duration": "0s"}, 'spec.duration: Invalid value: "0s": must be a duration above 0s'),
        ({"duration": "-2h"}, 'spec.duration: Invalid value: "-2h": must be a duration above 0s'),
        ({"duration": "9000h"}, 'spec.duration: Invalid value: "9000h": must be a duration above 0s'),
        ({"duration": "soon"}, 'spec.duration: Invalid value: "soon": must be a duration above 0s'),
        ({"start": None}, "spec.start: Required value"),
        (
            {"start": "2026-01-01T10:00:00Z"},
            'spec.start: Invalid value: "2026-01-01T10:00:00Z": the window has ended at 2026-01-01T12:00:00Z',
        ),
        ({"until": "2026-02-01T00:00:00Z"}, "spec.until: Forbidden: only windows of a schedule end"),
        ({"schedule": "whenever"}, 'spec.schedule: Invalid value: "whenever": unparseable schedule'),
        ({"schedule": "@every 1h"}, 'spec.schedule: Invalid value: "@every 1h": must name times'),
        (
            {"start": None, "schedule": "0 14 * * *", "until": "2026-01-01T13:00:00Z"},
            'spec.schedule: Invalid value: "0 14 * * *": no window of it is to come',
        ),
        ({"timeZone": "Mars/North"}, 'spec.timeZone: Invalid value: "Mars/North": there is no such time zone'),
        ({"nodes": None}, "spec: Required value: nodes or resources must be stated"),
        ({"nodes": ["n1", "n9"]}, 'spec.nodes[1]: Not found: "n9"'),
        ({"nodes": ["n1", "n1"]}, 'spec.nodes[1]: Duplicate value: "n1"'),
        ({"resources": {}}, "spec.resources: Required value: at least one resource"),
        ({"resources": {"cpu": "0"}}, 'spec.resources[cpu]: Invalid value: "0": must be greater than 0'),
        ({"resources": {"cpu": "-1"}}, 'spec.resources[cpu]: Invalid value: "-1": must be greater than 0'),
        ({"resources": {"cpu": "many"}}, 'spec.resources[cpu]: Invalid value: "many"'),
        ({"resources": {"cpu": "9"}}, 'spec.resources[cpu]: Invalid value: "9": exceeds the 8 of these nodes'),
        (
            {"nodes": None, "resources": {"cpu": "17"}},
            'spec.resources[cpu]: Invalid value: "17": exceeds the 16 of the cluster',
        ),
        (
            {"nodes": None, "resources": {"nvidia.com/gpu": "1"}},
            'spec.resources[nvidia.com/gpu]: Invalid value: "1": exceeds the 0 of the cluster',
        ),
    ],
)
def test_these_are_refused_when_they_are_created_and_when_they_are_changed(spec: dict[str, Any], problem: str) -> None:
    new = reservation("new", **spec)

    assert problem in answer(new)
    assert problem in answer(new, reservation("new"), old=reservation("new"))


@pytest.mark.parametrize(
    ("spec", "other", "problem"),
    [
        ({}, {}, 'spec.nodes[0]: Invalid value: "n1": reservation other has it in a window that overlaps'),
        (
            {"start": None, "schedule": "0 15 * * *", "duration": "1h"},
            {"start": "2026-01-20T15:30:00Z"},
            "reservation other has it in a window that overlaps",
        ),
        (
            {"nodes": None, "resources": {"cpu": "9"}},
            {"nodes": None, "resources": {"cpu": "8"}},
            'spec.resources[cpu]: Invalid value: "9": exceeds the 16 of the cluster, and overlapping reservations keep 8',
        ),
        (
            {"resources": {"cpu": "5"}},
            {"resources": {"cpu": "4"}},
            "exceeds the 8 of these nodes, and overlapping reservations keep 4",
        ),
        ({"nodes": None, "resources": {"cpu": "9"}}, {}, "exceeds the 8 of the cluster"),
        (
            {},
            {"nodes": None, "resources": {"cpu": "9"}},
            'spec.nodes: Invalid value: ["n1"]: leaves 8 cpu, and overlapping reservations keep 9',
        ),
    ],
)
def test_what_another_keeps_at_that_time_is_refused(spec: dict[str, Any], other: dict[str, Any], problem: str) -> None:
    assert problem in answer(reservation("new", **spec), reservation("other", **other))


@pytest.mark.parametrize(
    "other",
    [{"start": "2026-01-01T16:00:00Z"}, {"nodes": ["n2"]}, {"start": "2026-01-01T09:00:00Z"}],
)
def test_others_at_other_times_and_on_other_nodes_do_not_matter(other: dict[str, Any]) -> None:
    assert answer(reservation("new"), reservation("other", **other)) == ""


def test_amounts_on_one_node_may_be_kept_for_two_holders() -> None:
    assert answer(reservation("new", resources={"cpu": "4"}), reservation("other", resources={"cpu": "4"})) == ""


def test_an_update_that_leaves_the_spec_alone_is_accepted_also_when_a_node_has_left() -> None:
    old = reservation("new", nodes=["gone"], start="2025-01-01T00:00:00Z")
    labelled = {**old, "metadata": {"name": "new", "labels": {"a": "b"}}}

    assert answer(labelled, old=old) == ""
