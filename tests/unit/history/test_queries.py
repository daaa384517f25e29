"""One suite, two databases: every question is answered alike by SQLite and PostgreSQL."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from volcano.api.history_records import (
    EvictionRecord,
    GapRecord,
    JobRecord,
    NodeSample,
    PastPod,
    QueueSample,
    RoleRecord,
    StateRecord,
)
from volcano.history import queries
from volcano.history.batch import Measured, RowBatch
from volcano.history.commit import commit
from volcano.history.database import Database
from volcano.history.questions import EvictionQuestion, JobQuestion, QuestionRefused, SampleQuestion

T0 = datetime(2026, 1, 5, 12, tzinfo=UTC)


def minutes(count: float) -> datetime:
    return T0 + timedelta(minutes=count)


def a_job(number: int, **more: object) -> JobRecord:
    fields: dict[str, object] = {
        "uid": f"job-{number}",
        "namespace": "team-a" if number % 2 else "team-b",
        "name": f"train_{number}",
        "queue": "research" if number < 3 else "default",
        "user": "ada" if number % 2 else "bob",
        "labels": {"stage": "dev"} if number == 1 else {"stage": "prod", "x": "y"},
        "roles": [RoleRecord(name="worker", count=2, requests={"cpu": "1"})],
        "pods": 2,
        "cpu_milli": 1000 * number,
        "phase": "Completed",
        "created": minutes(number),
        "started": minutes(number + 1),
        "ended": minutes(number + 10),
        **more,
    }
    return JobRecord(**fields)


@pytest.fixture
def filled(database: Database) -> Database:
    batch = RowBatch()
    for number in range(1, 5):
        job = a_job(number)
        batch.jobs[job.uid] = job
        batch.states += [
            StateRecord(job_uid=job.uid, at=minutes(number), phase="Pending", reason="NotEnoughResources"),
            StateRecord(job_uid=job.uid, at=minutes(number + 1), phase="Running"),
            StateRecord(job_uid=job.uid, at=minutes(number + 10), phase="Completed"),
        ]
    waiting = a_job(5, phase="Pending", started=None, ended=None, user="<script>")
    batch.jobs[waiting.uid] = waiting
    batch.states.append(StateRecord(job_uid=waiting.uid, at=minutes(5), phase="Pending"))
    pod = PastPod(
        uid="pod-1", job_uid="job-1", namespace="team-a", name="train-1-worker-0", role="worker", node="n1",
        phase="Succeeded", exit_code=0, cpu_milli=500, created=minutes(1), bound=minutes(2), started=minutes(2),
        ended=minutes(11),
    )  # fmt: skip
    batch.pods[pod.uid] = pod
    batch.evictions["pod-9"] = EvictionRecord(
        pod_uid="pod-9", job_uid="job-2", at=minutes(4), namespace="team-b", pod="p", by="scheduler",
        reason="preemption", preemptor="team-a/train-1",
    )  # fmt: skip
    batch.queues += [QueueSample(at=minutes(m), queue="research", allocated={"cpu": str(m)}) for m in (0, 3, 6)]
    batch.nodes += [NodeSample(at=minutes(0), node="n1", allocatable={"cpu": "8"}, requested={"cpu": "1"}, pods=1)]
    batch.gaps.append(GapRecord(kind="pods", begin=minutes(3), end=minutes(4), why="away"))
    batch.measured.append(Measured("pod-1", 60_000, 15_000, 60 * 64))
    commit(database, batch)
    return database


def names(database: Database, **asked: object) -> list[str]:
    return [job.uid for job in queries.jobs(database, JobQuestion(**asked)).jobs]


def test_a_record_comes_back_as_it_was_written(filled: Database):
    found = queries.jobs(filled, JobQuestion(uid="job-1")).jobs[0]

    assert found == a_job(1)


def test_writing_a_record_again_replaces_it(filled: Database):
    batch = RowBatch()
    batch.jobs["job-1"] = a_job(1, phase="Failed")
    batch.states.append(StateRecord(job_uid="job-1", at=minutes(1), phase="Pending", reason="NotEnoughResources"))

    commit(filled, batch)

    story = queries.story(filled, "job-1")
    assert story is not None
    assert story.job.phase == "Failed"
    assert len(story.states) == 3
    assert queries.jobs(filled, JobQuestion()).total == 5


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, ["job-5", "job-4", "job-3", "job-2", "job-1"]),
        ({"descending": False, "limit": 2, "offset": 1}, ["job-2", "job-3"]),
        ({"user": "ada"}, ["job-3", "job-1"]),
        ({"user": "<script>"}, ["job-5"]),
        ({"queue": "research", "sort": "cpu"}, ["job-2", "job-1"]),
        ({"namespace": "team-b"}, ["job-4", "job-2"]),
        ({"visible": frozenset({"team-b"})}, ["job-4", "job-2"]),
        ({"visible": frozenset({"team-b"}), "namespace": "team-a"}, []),
        ({"visible": frozenset()}, []),
        ({"states": ("waiting",)}, ["job-5"]),
        ({"states": ("ended",), "sort": "ended", "descending": False}, ["job-1", "job-2", "job-3", "job-4"]),
        ({"phases": ("Failed",)}, []),
        ({"text": "N_3"}, ["job-3"]),
        ({"text": "%"}, []),
        ({"label": "stage=dev"}, ["job-1"]),
        ({"label": "x", "limit": 1}, ["job-5"]),
        ({"node": "n1"}, ["job-1"]),
        ({"since": minutes(13)}, ["job-5", "job-4", "job-3"]),
        ({"until": minutes(3)}, ["job-2", "job-1"]),
        ({"ended_since": minutes(12), "ended_until": minutes(14)}, ["job-3", "job-2"]),
        ({"sort": "waited", "limit": 2}, ["job-5", "job-1"]),
        ({"sort": "ran", "limit": 1}, ["job-1"]),
        ({"sort": "started", "descending": True}, ["job-4", "job-3", "job-2", "job-1", "job-5"]),
    ],
    ids=str,
)
def test_jobs_are_filtered_sorted_and_paged(filled: Database, asked: dict[str, object], expected: list[str]):
    assert names(filled, **asked) == expected


def test_the_total_counts_all_pages(filled: Database):
    page = queries.jobs(filled, JobQuestion(limit=2))

    assert (len(page.jobs), page.total) == (2, 5)


def test_an_unknown_order_is_refused_with_the_list():
    with pytest.raises(QuestionRefused, match="sort: must be one of created, started"):
        JobQuestion(sort="uid; DROP TABLE jobs")


def test_jobs_are_counted_by_group_and_phase(filled: Database):
    found = queries.job_counts(filled, JobQuestion(), "queue")
    by_label = queries.job_counts(filled, JobQuestion(), "label:stage")

    assert [(each.group, each.phase, each.count) for each in found] == [
        ("default", "Completed", 2),
        ("default", "Pending", 1),
        ("research", "Completed", 2),
    ]
    assert [(each.group, each.count) for each in by_label] == [("dev", 1), ("prod", 3), ("prod", 1)]


def test_a_story_has_states_pods_evictions_and_gaps(filled: Database):
    story = queries.story(filled, "job-1")

    assert story is not None
    assert [state.phase for state in story.states] == ["Pending", "Running", "Completed"]
    assert [(pod.name, pod.node, pod.used_cpu_milli, pod.measured_seconds) for pod in story.pods] == [
        ("train-1-worker-0", "n1", 250, 60.0)
    ]
    assert [gap.kind for gap in story.gaps] == ["pods"]
    evicted = queries.story(filled, "job-2")
    assert evicted is not None
    assert [(each.by, each.preemptor) for each in evicted.evictions] == [("scheduler", "team-a/train-1")]


def test_a_story_of_an_invisible_namespace_is_not_told(filled: Database):
    assert queries.story(filled, "job-1", frozenset({"team-b"})) is None


def test_jobs_of_a_past_moment_are_in_their_phases_of_then(filled: Database):
    then = queries.jobs(filled, JobQuestion(at=minutes(3.5), descending=False)).jobs

    assert [(job.uid, job.phase, job.ended) for job in then] == [
        ("job-1", "Running", None),
        ("job-2", "Running", None),
        ("job-3", "Pending", None),
    ]
    assert names(filled, at=minutes(3.5), phases=("Running",)) == ["job-2", "job-1"]


def test_a_past_moment_has_queues_nodes_and_counts(filled: Database):
    then = queries.moment(filled, minutes(3.5))

    assert [(each.queue, each.allocated) for each in then.queues] == [("research", {"cpu": "3"})]
    assert [each.node for each in then.nodes] == ["n1"]
    assert [gap.why for gap in then.gaps] == ["away"]
    assert {(each.group, each.phase): each.count for each in then.jobs} == {
        ("research", "Running"): 2,
        ("default", "Pending"): 1,
    }


def test_samples_of_a_time_begin_with_the_last_before_it(filled: Database):
    found = queries.queue_samples(filled, SampleQuestion(since=minutes(4), until=minutes(10)))

    assert [sample.at for sample in found] == [minutes(3), minutes(6)]


def test_pods_that_held_a_node_at_a_moment(filled: Database):
    assert [pod.uid for pod in queries.pods(filled, at=minutes(5), node="n1")] == ["pod-1"]
    assert queries.pods(filled, at=minutes(11), node="n1") == []


def test_evictions_are_listed_within_what_may_be_seen(filled: Database):
    question = EvictionQuestion(since=minutes(0), until=minutes(10))
    hidden = EvictionQuestion(since=minutes(0), until=minutes(10), visible=frozenset({"team-a"}))

    assert [each.pod_uid for each in queries.evictions(filled, question)] == ["pod-9"]
    assert queries.evictions(filled, hidden) == []
