"""What is learned from finished jobs: percentiles, bounds, and independence of the order."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

from volcano.api.batch import Job
from volcano.api.decode import decode_object
from volcano.api.history_records import JobRecord
from volcano.api.jobs.estimates import LearnedEstimate
from volcano.api.jobs.run_times import MAX_NAMES, MAX_RUNS_PER_NAME, PastRun, RunName, RunTimes, completed_run
from volcano.api.times import timestamp

START = datetime(2026, 1, 1, tzinfo=UTC)
TRAIN = RunName("ann", "default", "train")


def a_run(number: int, seconds: float) -> PastRun:
    return PastRun(START + timedelta(minutes=number), f"uid-{number}", seconds)


def a_completed_job(seconds: int, *, phase: str = "Completed") -> Job:
    conditions = [
        {"status": "Running", "lastTransitionTime": timestamp(START)},
        {"status": phase, "lastTransitionTime": timestamp(START + timedelta(seconds=seconds))},
    ]
    status = {"state": {"phase": phase}, "conditions": conditions}
    return decode_object(Job, {"metadata": {"name": "train-1", "uid": "u"}, "status": status})


def test_the_estimate_is_the_ninetieth_percentile_and_says_on_how_many_runs_it_rests() -> None:
    table = RunTimes()

    for number in range(1, 11):
        table.add(TRAIN, a_run(number, number * 60.0))

    assert table.learned(TRAIN) == LearnedEstimate(300.0, 540.0, 10)
    assert table.learned(RunName("bob", "default", "train")) is None


def test_the_order_in_which_runs_are_added_does_not_matter() -> None:
    runs = [a_run(number, float(number % 7 + 1)) for number in range(3 * MAX_RUNS_PER_NAME)]
    shuffled = random.Random(5).sample(runs, len(runs))
    one, other = RunTimes(), RunTimes()

    for run in runs:
        one.add(TRAIN, run)
    for run in (*shuffled, *shuffled[:20]):  # and some of them twice
        other.add(TRAIN, run)

    assert one.learned(TRAIN) == other.learned(TRAIN)


def test_the_table_stays_bounded_and_forgets_what_ran_longest_ago() -> None:
    table = RunTimes()

    for number in range(MAX_NAMES + 10):
        table.add(RunName("ann", "default", f"job{number}"), a_run(number, 1.0))

    assert table.learned(RunName("ann", "default", "job0")) is None
    assert table.learned(RunName("ann", "default", f"job{MAX_NAMES + 9}")) is not None


def test_a_completed_job_ran_from_running_to_completed_and_a_failed_one_teaches_nothing() -> None:
    completed = completed_run(a_completed_job(90))

    assert completed is not None
    assert completed.seconds == 90.0
    assert completed_run(a_completed_job(90, phase="Failed")) is None
    assert completed_run(decode_object(Job, {"metadata": {"name": "j"}})) is None


def test_jobs_of_the_history_teach_as_jobs_that_are_there_do() -> None:
    table = RunTimes()
    past = {"namespace": "ns", "queue": "default", "user": "ann", "phase": "Completed", "created": START}

    table.add_past(JobRecord(uid="a", name="train-17", started=START, ended=START + timedelta(seconds=60), **past))
    table.add_past(JobRecord(uid="a", name="train-17", started=START, ended=START + timedelta(seconds=60), **past))
    table.add_past(JobRecord(uid="b", name="train-18", started=START, ended=START, retries=1, **past))
    table.add_past(JobRecord(uid="c", name="train-19", **{**past, "phase": "Failed"}))

    assert table.learned(TRAIN) == LearnedEstimate(60.0, 60.0, 1)
