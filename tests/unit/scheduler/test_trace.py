"""A snapshot written as a scenario is the same snapshot when read again, with and without names."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from volcano.scheduler.cache import Cache, CacheSettings
from volcano.scheduler.cache.cache import Batch
from volcano.scheduler.core.assemble import snapshot_from
from volcano.scheduler.framework.config import DEFAULT_CONFIG
from volcano.scheduler.model import Status
from volcano.scheduler.service.replay import replay_scenario, scenario_snapshot
from volcano.scheduler.trace import redacted, restore_state, scenario_from

OBJECTS = {
    "nodes": [
        {
            "metadata": {"name": name, "labels": {"pool": "secret-pool"}},
            "status": {"allocatable": {"cpu": "2", "memory": "4Gi", "pods": "10"}},
        }
        for name in ("alpha", "beta")
    ],
    "queues": [{"metadata": {"name": "team"}, "spec": {"weight": 1}, "status": {"state": "Open"}}],
    "podGroups": [
        {
            "metadata": {"name": "train", "namespace": "research"},
            "spec": {"minMember": 2, "queue": "team"},
            "status": {"phase": "Inqueue"},
        }
    ],
    "pods": [
        {
            "metadata": {
                "name": f"train-worker-{number}",
                "namespace": "research",
                "uid": f"uid{number}",
                "annotations": {"scheduling.k8s.io/group-name": "train"},
            },
            "spec": {
                "containers": [{"image": "registry/private", "resources": {"requests": {"cpu": "1"}}}],
                "nodeSelector": {"pool": "secret-pool"},
            },
            "status": {"phase": "Pending"},
        }
        for number in range(3)
    ],
}


def recorded():
    snapshot = snapshot_from(OBJECTS, now=datetime(2026, 1, 1, tzinfo=UTC))
    restore_state(snapshot, {"assumed": {"uid0": "alpha"}})
    return snapshot, scenario_from(snapshot, configuration=DEFAULT_CONFIG, seed=3)


def test_a_recorded_snapshot_reads_back_with_what_was_on_its_way():
    before, scenario = recorded()

    after = scenario_snapshot(json.loads(json.dumps(scenario)))

    assert after.now == before.now
    assert {t.uid: (t.status, t.node) for t in after.tasks.values()} == {
        "uid0": (Status.BINDING, "alpha"),
        "uid1": (Status.PENDING, ""),
        "uid2": (Status.PENDING, ""),
    }
    assert after.table.idle.tolist() == before.table.idle.tolist()


def test_a_recorded_cycle_is_decided_the_same_way_again():
    _, scenario = recorded()

    outcomes = [replay_scenario(json.loads(json.dumps(scenario))) for _ in range(2)]

    assert outcomes[0]["binds"] == outcomes[1]["binds"]
    assert len(outcomes[0]["binds"]) == 2


def test_redacted_names_are_gone_and_the_decisions_are_the_same_in_number():
    _, scenario = recorded()

    text = json.dumps(redacted(scenario))

    for word in ("alpha", "beta", "team", "research", "train", "secret-pool", "registry/private"):
        assert word not in text
    assert len(replay_scenario(json.loads(text))["binds"]) == 2


@pytest.mark.parametrize("name", ["default", "root"])
def test_names_everybody_has_stay(name):
    scenario = {"objects": {"queues": [{"metadata": {"name": name}}]}}

    assert redacted(scenario) == scenario


def test_an_adopted_pod_is_recorded_with_its_job_of_one():
    from volcano.api import core, scheduling
    from volcano.api.decode import decode_object

    body = OBJECTS["pods"][0] | {"metadata": {"name": "plain", "namespace": "research", "uid": "u"}}
    pod = decode_object(core.Pod, body | {"spec": {"schedulerName": "default-scheduler", "containers": []}})
    queue = decode_object(scheduling.Queue, {"metadata": {"name": "default"}, "status": {"state": "Open"}})
    cache = Cache(CacheSettings(adopt_plain_pods=True))
    batch = Batch({(core.Pod, pod.key): pod, (scheduling.Queue, queue.key): queue})
    snapshot = cache.refresh(batch, datetime(2026, 1, 1, tzinfo=UTC), "x")

    again = scenario_snapshot(scenario_from(snapshot, configuration=DEFAULT_CONFIG, seed=0))

    assert [len(job.tasks) for job in again.schedulable_jobs().values()] == [1]
