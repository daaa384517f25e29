"""Expected starts: what is promised is what the scheduler then does."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import pytest

from tests import needs
from volcano.api import core, scheduling
from volcano.api.jobs.estimates import ESTIMATE_KEY, LEARNED_KEY, LearnedEstimate, encode_learned
from volcano.api.jobs.expected_starts import ExpectedStarts
from volcano.api.meta import ObjectMeta, Resource
from volcano.scheduler.actions import ACTIONS
from volcano.scheduler.cache import CacheSettings
from volcano.scheduler.framework.config import parse_config
from volcano.scheduler.plugins import PLUGINS
from volcano.scheduler.service.expected_starts import expected_starts
from volcano.scheduler.service.registry import Registry
from volcano.scheduler.service.simulate import Known
from volcano.simulator.engine import EPOCH, NAMESPACE, Engine
from volcano.simulator.jobs import Role, WorkloadJob

CONFIGURATION = """
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: easy
    arguments: {easy.scope: cluster}
  - name: gang
    enableJobOrder: false
  - name: predicates
"""
CONFIG = parse_config(CONFIGURATION, known_actions=ACTIONS)


def a_cluster(seed: int, *, exact: bool) -> Engine:
    """A cluster of 2 to 16 nodes with up to 14 jobs, all submitted within ten seconds; each pod takes a whole node.

    Where pods share nodes, chance decides between equal nodes, and with it sometimes when a later job fits.
    """
    chance = random.Random(seed)
    nodes = chance.randint(2, 16)
    has = {"cpu": "4", "memory": "16Gi", "pods": "110"}
    of = Engine(
        [
            core.Node(metadata=ObjectMeta(name=f"n{index}"), status=core.NodeStatus(allocatable=has, capacity=has))
            for index in range(nodes)
        ],
        [scheduling.Queue(metadata=ObjectMeta(name="default"), status=scheduling.QueueStatus(state="Open"))],
        CONFIG,
    )
    jobs = []
    for number in range(chance.randint(4, 14)):
        estimate = float(chance.randint(20, 300))
        run_time = estimate if exact else float(round(estimate * chance.uniform(0.5, 2.0)))
        role = Role("task", chance.randint(1, nodes), {"cpu": "4"})
        jobs.append(
            WorkloadJob(f"job-{number:02d}", float(chance.randint(0, 10)), run_time, (role,), estimate=estimate)
        )
    of.submit(jobs)
    of.run(until=15.0)
    return of


def asked(of: Engine, *, may_go_on: bool = True) -> ExpectedStarts:
    objects: dict[type[Resource], list[Resource]] = {}
    for (kind, _), resource in of.cluster.objects.items():
        objects.setdefault(kind, []).append(resource)
    known = Known(
        CacheSettings(), objects, CONFIG, Registry(PLUGINS, ACTIONS), EPOCH + timedelta(seconds=of.now), _no_jobs
    )
    return expected_starts(known, lambda _kind: may_go_on)


def _no_jobs(*_: Any, **__: Any) -> Any:
    raise AssertionError("no Job is expanded")


def outcome(of: Engine) -> dict[str, float]:
    of.run()
    return {f"{NAMESPACE}/{name}": each.start for name, each in of.outcomes.items() if each.start is not None}


@pytest.mark.parametrize("seed", range(8))
def test_with_exact_estimates_jobs_start_when_it_was_said(seed: int) -> None:
    of = a_cluster(seed, exact=True)

    said = asked(of)

    started = outcome(of)
    shown = {name: (each.start - EPOCH).total_seconds() for name, each in said.jobs.items() if each.start is not None}
    assert shown == pytest.approx({name: started[name] for name in said.jobs}, abs=0.01)


def test_an_answer_names_what_it_rests_on_and_what_it_waits_for() -> None:
    of = a_cluster(1, exact=True)
    for place, resource in list(of.cluster.objects.items()):
        if isinstance(resource, scheduling.PodGroup) and resource.name == "job-13":
            annotations = dict(resource.annotations)
            annotations.pop(ESTIMATE_KEY)
            annotations[LEARNED_KEY] = encode_learned(LearnedEstimate(30.0, 60.0, 12))
            of.cluster.objects[place] = scheduling.PodGroup(
                metadata=ObjectMeta(
                    name=resource.name,
                    namespace=resource.namespace,
                    uid=resource.uid,
                    creation_timestamp=resource.metadata.creation_timestamp,
                    annotations=annotations,
                ),
                spec=resource.spec,
                status=resource.status,
            )

    said = asked(of)

    assert said.jobs, "something waits"
    assert all(
        each.earliest <= each.start <= each.latest
        for each in said.jobs.values()
        if each.start and each.earliest and each.latest
    )
    assert any(each.after for each in said.jobs.values())
    assert {each.basis for each in said.jobs.values()} <= {"stated", "learned"}


@pytest.mark.parametrize("seed", range(4))
def test_what_cannot_be_played_is_estimated_coarsely(seed: int) -> None:
    of = a_cluster(seed, exact=True)

    said = asked(of, may_go_on=False)

    started = outcome(of)
    assert said.jobs.keys() == {name for name in said.jobs if started[name] >= 15.0}
    assert all(each.start is not None for each in said.jobs.values())


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("clusters", [15, pytest.param(200, marks=needs.MANY_MINUTES)])
def test_expected_starts_of_many_clusters(clusters: int, capsys: pytest.CaptureFixture[str]) -> None:
    """With 200 the figures of docs/time.md: exact run times, and run times of half to twice the estimate."""
    right = within = jobs = inexact = 0
    for seed in range(clusters):
        of = a_cluster(seed, exact=True)
        said = asked(of)
        started = outcome(of)
        for name, each in said.jobs.items():
            jobs += 1
            right += each.start is not None and abs((each.start - EPOCH).total_seconds() - started[name]) < 0.01
        of = a_cluster(seed, exact=False)
        said = asked(of)
        started = outcome(of)
        for name, each in said.jobs.items():
            inexact += 1
            moment = EPOCH + timedelta(seconds=started[name])
            within += each.earliest is not None and each.latest is not None and each.earliest <= moment <= each.latest
    with capsys.disabled():
        print(f"\n{right} of {jobs} jobs start when it was said; {within} of {inexact} within the range")
    assert right == jobs
    assert within >= 0.8 * inexact
