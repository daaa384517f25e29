"""Filters and scores against what Kubernetes' own plugins (1.36.3) said of sixty random clusters.

The file holds, for each cluster, what every plugin alone answered for each pending pod: for a filter the nodes it
refuses with code and reasons (`*`: refused before any node), for a scorer the normalised score of every node.
"""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import numpy as np
import pytest

from volcano.scheduler.framework.answers import Code

ANSWERS = json.loads(gzip.decompress((Path(__file__).parent / "kubernetes_answers.json.gz").read_bytes()))
FILTERS = {
    "NodeAffinity": "NodeAffinityEnable",
    "NodePorts": "NodePortsEnable",
    "TaintToleration": "TaintTolerationEnable",
    "InterPodAffinity": "PodAffinityEnable",
    "VolumeZone": "VolumeZoneEnable",
    "PodTopologySpread": "PodTopologySpreadEnable",
    "VolumeBinding": "VolumeBindingEnable",
}
SCORERS = {
    "LeastAllocated": "leastrequested",
    "MostAllocated": "mostrequested",
    "Balanced": "balancedresource",
    "NodeAffinity": "nodeaffinity",
    "InterPodAffinity": "podaffinity",
    "TaintToleration": "tainttoleration",
    "ImageLocality": "imagelocality",
    "PodTopologySpread": "podtopologyspread",
}
CODES = {
    "Error": Code.ERROR,
    "Unschedulable": Code.UNSCHEDULABLE,
    "UnschedulableAndUnresolvable": Code.UNRESOLVABLE,
}
CLOSED = (Code.UNRESOLVABLE, "node(s) were unschedulable")


def waiting(session):
    return [task for task in session.snapshot.tasks.values() if not task.node]


@pytest.mark.parametrize("number", range(len(ANSWERS)))
@pytest.mark.parametrize("name", FILTERS)
def test_a_filter_alone_refuses_the_nodes_kubernetes_refuses(asked, name, number):
    answer = ANSWERS[number]
    others = [switch for filter_name, switch in FILTERS.items() if filter_name != name] + ["NodeVolumeLimitsEnable"]
    given = asked("predicates", arguments={f"predicate.{switch}": False for switch in others}, **answer["objects"])

    for task in waiting(given.session):
        expected = answer["filters"][task.key].get(name, {})
        refused_early = given.refusal(task.name)
        if "*" in expected:
            # A claim that cannot be had is said once, by VolumeBinding, which looks at claims for VolumeZone too.
            assert name == "VolumeZone" or any(reason in refused_early for reason in expected["*"])
            continue
        if name != "VolumeBinding" and refused_early:
            continue
        assert not refused_early
        _compare(given, task, expected, several=name == "VolumeBinding")


def _compare(given, task, expected, *, several):
    filtered = given.session.nodes.filtered(task)
    closed = filtered.causes.get(CLOSED, np.zeros(len(given.session.table), dtype=bool))
    for row, node in enumerate(given.session.table.nodes):
        if closed[row]:
            continue  # settled before the filter in question is asked
        said = [(code, reason) for (code, reason), rows in filtered.causes.items() if rows[row]]
        code, *reasons = expected.get(node.name, [None])
        assert {c for c, _ in said} == ({CODES[code]} if code else set()), (task.key, node.name)
        told = {reason for _, reason in said}
        assert told <= set(reasons) if several else told == set(reasons), (task.key, node.name)


@pytest.mark.parametrize("number", range(len(ANSWERS)))
@pytest.mark.parametrize("name", SCORERS)
def test_a_scorer_alone_gives_kubernetes_scores(asked, name, number):
    answer = ANSWERS[number]
    weights = {f"{scorer}.weight": int(scorer == SCORERS[name]) for scorer in SCORERS.values()}
    given = asked("nodeorder", arguments=weights, **answer["objects"])

    for task in waiting(given.session):
        nothing = {node.name: 0 for node in given.session.table.nodes}
        expected = answer["scores"][task.key].get(name) or nothing
        assert given.scores(task.name) == pytest.approx(expected, abs=1e-9), task.key


@pytest.mark.parametrize("number", range(len(ANSWERS)))
def test_answers_kept_while_things_move_are_those_asked_anew(asked, number):
    def stir(given, *, asks):
        chance = random.Random(number)
        tasks = sorted(given.session.snapshot.tasks.values(), key=lambda task: task.uid)
        nodes = [node.name for node in given.session.table.nodes]
        pending, running = [t for t in tasks if not t.node], [t for t in tasks if t.node]
        for task in chance.sample(pending, 3):
            if asks:
                answers(given)
            if given.place(task.name, chance.choice(nodes)) is None and chance.random() < 0.4:
                given.lift(task.name)
        for task in chance.sample(running, min(2, len(running))):
            given.evict(task.name)
        return answers(given)

    def answers(given):
        told = {}
        for task in waiting(given.session):
            filtered = given.session.nodes.filtered(task)
            causes = {place: rows.tolist() for place, rows in filtered.causes.items() if rows.any()}
            everybody = np.ones(len(given.session.table), dtype=bool)
            told[task.key] = (causes, given.session.nodes.scored(task).total(everybody, task).tolist())
        return told

    kept, fresh = (asked("predicates", "nodeorder", **ANSWERS[number]["objects"]) for _ in range(2))

    assert stir(kept, asks=True) == stir(fresh, asks=False)
