"""extender: what a service is asked, and what its answers do."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from volcano.scheduler.plugins.extender import Extender, reaching
from volcano.testing.clusters import CycleOutcome, cluster, gang, running

JSON = dict[str, Any]


class Service:
    """Answers by verb, and remembers what it was asked."""

    def __init__(self, **answers: Callable[[JSON], Any]) -> None:
        self.answers = answers
        self.asked: list[tuple[str, JSON]] = []

    def __call__(self, url: str, body: bytes, timeout: timedelta) -> tuple[int, bytes]:
        prefix, _, verb = url.rpartition("/")
        assert prefix == "http://service/path"
        self.asked.append((verb, json.loads(body)))
        if verb not in self.answers:
            raise OSError("nobody there")
        answer = self.answers[verb](json.loads(body))
        return answer if isinstance(answer, tuple) else (200, json.dumps(answer).encode())

    def verbs(self) -> list[str]:
        return [verb for verb, _ in self.asked]


def schedule(
    service: Service, *verbs: str, actions: str = "enqueue, allocate", jobs: JSON | None = None, **more: Any
) -> CycleOutcome:
    arguments = {"extender.urlPrefix": "http://service/path/", **{f"extender.{v}Verb": v for v in verbs}}
    arguments |= {f"extender.{key}": value for key, value in more.items()}
    plugin = reaching(service)
    plugin.name = "extender"
    given = cluster(nodes={"n1": "cpu=2", "n2": "cpu=2"}, jobs=jobs or {"a": gang(1, min_resources="cpu=1")})
    return given.schedule(actions, "gang, extender", arguments={"extender": arguments}, knowing=[plugin])


def test_a_node_the_service_refuses_is_not_used_and_its_words_are_told() -> None:
    service = Service(predicate=lambda body: {"status": "" if body["node"]["Name"] == "n2" else "not here", "code": 2})
    nowhere = Service(predicate=lambda body: {"status": "not here"})

    assert schedule(service, "predicate").binds == {"a-0": "n2"}
    refused = schedule(nowhere, "predicate")
    assert refused.binds == {}
    assert refused.why["a"] == "0 of 1 tasks fit; 2 nodes: not here"


def test_it_is_told_the_task_and_the_node() -> None:
    service = Service(predicate=lambda body: {})

    schedule(service, "predicate")

    body = next(body for verb, body in service.asked if verb == "predicate")
    assert body["task"]["Name"] == "a-0"
    assert body["task"]["Resreq"]["MilliCPU"] == 1000.0
    assert body["task"]["Pod"]["metadata"]["name"] == "a-0"
    assert body["node"]["Idle"]["MilliCPU"] == 2000.0
    assert body["node"]["Node"]["metadata"]["name"] == body["node"]["Name"]


def test_the_node_it_scores_highest_is_taken() -> None:
    service = Service(prioritize=lambda body: {"nodeScore": {"n1": 1, "n2": 7.5}})

    assert schedule(service, "prioritize").binds == {"a-0": "n2"}


@pytest.mark.parametrize("favoured", ["n1", "n2"])
@pytest.mark.parametrize("counts", [True, False])
def test_scores_that_come_with_an_error_do_not_count(favoured: str, counts: bool) -> None:
    answer = {"nodeScore": {favoured: 7}} | ({} if counts else {"errorMessage": "no"})
    unscored = schedule(Service()).binds

    binds = schedule(Service(prioritize=lambda body: answer), "prioritize").binds

    assert binds == ({"a-0": favoured} if counts else unscored)


@pytest.mark.parametrize("answer", [{"nodeScore": None}, {}])
def test_an_answer_without_scores_changes_nothing(answer: JSON) -> None:
    assert schedule(Service(prioritize=lambda body: answer), "prioritize").binds == schedule(Service()).binds


@pytest.mark.parametrize(("status", "enters"), [(1, True), (0, True), (-1, False)])
def test_it_votes_on_who_may_enter(status: int, enters: bool) -> None:
    outcome = schedule(Service(jobEnqueueable=lambda body: {"status": status}), "jobEnqueueable")

    assert (outcome.phases["a"] != "Pending") == enters


def test_it_is_told_who_has_entered_and_when_a_cycle_begins_and_ends() -> None:
    service = Service(jobEnqueued=lambda b: {}, onSessionOpen=lambda b: {}, onSessionClose=lambda b: {})

    schedule(service, "jobEnqueued", "onSessionOpen", "onSessionClose")

    assert service.verbs() == ["onSessionOpen", "jobEnqueued", "onSessionClose"]
    opened = service.asked[0][1]
    assert (list(opened["Jobs"]), sorted(opened["Nodes"]), opened["NodeList"]) == (["default/a"], ["n1", "n2"], None)


def test_without_an_answer_to_the_first_question_no_other_is_asked_unless_that_can_be_ignored() -> None:
    silent, patient = Service(predicate=lambda b: {}), Service(predicate=lambda b: {})

    schedule(silent, "onSessionOpen", "predicate")
    schedule(patient, "onSessionOpen", "predicate", ignorable=True)

    assert silent.verbs() == ["onSessionOpen"]
    assert "predicate" in patient.verbs()


@pytest.mark.parametrize(("ignorable", "placed"), [(True, 1), (False, 0)])
@pytest.mark.parametrize("verb", ["predicate", "jobEnqueueable", "queueOverused", "allocateFunc"])
def test_when_the_service_is_away_it_depends_on_whether_that_can_be_ignored(
    verb: str, ignorable: bool, placed: int
) -> None:
    assert len(schedule(Service(), verb, ignorable=ignorable).binds) == placed


def test_a_job_is_ready_when_the_service_says_so() -> None:
    assert schedule(Service(jobReady=lambda body: {"status": False}), "jobReady").binds == {}
    assert len(schedule(Service(jobReady=lambda body: {"status": True}), "jobReady").binds) == 1


def test_a_queue_it_calls_overused_is_not_served() -> None:
    outcome = schedule(Service(queueOverused=lambda body: {"overused": True}), "queueOverused")

    assert outcome.why["a"] == "queue default uses all it deserves"


def test_its_objection_undoes_a_placement() -> None:
    service = Service(allocateFunc=lambda body: {"errorMessage": "no"}, deallocateFunc=lambda body: {})

    assert schedule(service, "allocateFunc", "deallocateFunc").binds == {}
    assert service.verbs() == ["allocateFunc", "deallocateFunc"]


def test_it_chooses_victims() -> None:
    service = Service(
        preemptable=lambda body: {"status": 1, "victims": [v for v in body["evictees"] if v["Name"] == "low-1"]}
    )
    jobs = {
        "low": running(["n1", "n1", "n2", "n2"], min=0, priority=1),
        "high": gang(1, priority=9, phase="Inqueue"),
    }

    outcome = schedule(service, "preemptable", actions="preempt", jobs=jobs)

    assert outcome.evicts == ["low-1"]


def test_only_pods_with_managed_resources_concern_it() -> None:
    service = Service(predicate=lambda body: {"status": "no"})
    jobs = {"plain": gang(1), "special": gang(1, each="cpu=1, example.com/thing=0")}

    outcome = schedule(service, "predicate", jobs=jobs, managedResources=["example.com/thing"])

    assert set(outcome.binds) == {"plain-0"}


@pytest.mark.parametrize("answer", [(500, b"{}"), (200, b"{"), (200, b"x" * (10 * 2**20 + 1)), (200, b"[]")])
def test_answers_that_are_none_count_as_silence(answer: tuple[int, bytes]) -> None:
    outcome = schedule(Service(predicate=lambda body: answer), "predicate")

    assert len(outcome.binds) == (1 if answer == (200, b"[]") else 0)


def test_without_a_way_to_reach_anybody_it_says_nothing() -> None:
    given = cluster(nodes={"n1": "cpu=2"}, jobs={"a": gang(1)})
    arguments = {"extender": {"extender.urlPrefix": "http://service", "extender.predicateVerb": "p"}}

    assert len(given.schedule(plugins="gang, extender", arguments=arguments, knowing=[Extender]).binds) == 1
