"""PlayedCluster: what both engines share."""

from __future__ import annotations

from datetime import UTC, datetime

from volcano.api import core, scheduling
from volcano.api.jobs.reservations import RESERVATION_ANNOTATION, StartReservation
from volcano.api.meta import ObjectMeta
from volcano.scheduler.actions import ACTIONS
from volcano.scheduler.framework.config import default_config
from volcano.scheduler.model import SeededChance
from volcano.scheduler.played_cluster import PlayedCluster, started_pod, updated_group

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_cycle_sees_what_was_put_and_no_longer_what_was_dropped() -> None:
    cluster = PlayedCluster(default_config(ACTIONS))
    node = core.Node(metadata=ObjectMeta(name="n1"))
    cluster.put_all([node, scheduling.Queue(metadata=ObjectMeta(name="default"))])

    cluster.decide(NOW, SeededChance(0))
    seen = set(cluster.snapshot.table.index)
    cluster.drop(node)
    cluster.decide(NOW, SeededChance(0))

    assert seen == {"n1"}
    assert not cluster.snapshot.table.index
    assert not cluster.has_changes
    assert {kind for kind, _ in cluster.objects} == {scheduling.Queue}


def test_a_started_pod_runs_on_its_node_from_now_on() -> None:
    pod = core.Pod(metadata=ObjectMeta(name="p"), status=core.PodStatus(phase="Pending"))

    started = started_pod(pod, "n1", NOW)

    assert (started.spec.node_name, started.status.phase, started.status.start_time) == ("n1", "Running", NOW)


def test_a_group_changes_only_with_its_phase_or_its_reservation() -> None:
    group = scheduling.PodGroup(metadata=ObjectMeta(name="g", namespace="default"))
    reserved = updated_group(group, "Inqueue", StartReservation(NOW, ("n1",), 1))

    assert reserved is not None
    assert reserved.status.phase == "Inqueue"
    assert updated_group(reserved, "Inqueue", StartReservation(NOW, ("n1",), 1)) is None
    dropped = updated_group(reserved, "Running", None)
    assert dropped is not None
    assert RESERVATION_ANNOTATION not in dropped.annotations
