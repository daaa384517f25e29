"""Which finished runs of a cron job are deleted, for both kinds of cron job."""

from __future__ import annotations

import pytest

from volcano.api.batch import Job
from volcano.api.cron.history import beyond_history
from volcano.api.decode import decode_object


def a_run(name: str, phase: str, minute: int | None = 0, *, deleting: bool = False) -> Job:
    metadata: dict = {"name": name}
    if minute is not None:
        metadata["creationTimestamp"] = f"2026-01-01T00:{minute:02}:00Z"
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-01T01:00:00Z"
    return decode_object(Job, {"metadata": metadata, "status": {"state": {"phase": phase}}})


RUNS = [
    a_run("late", "Completed", 3),
    a_run("early", "Completed", 1),
    a_run("middle", "Completed", 2),
    a_run("broken", "Failed", 1),
    a_run("busy", "Running", 0),
    a_run("stopped", "Terminated", 0),
]


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"Completed": 3}, []),
        ({"Completed": 2}, ["early"]),
        ({"Completed": 0}, ["early", "middle", "late"]),
        ({"Completed": -1}, ["early", "middle", "late"]),
        ({"Completed": None, "Failed": 0}, ["broken"]),
        ({"Completed": 2, "Failed": 1}, ["early"]),
        ({}, []),
    ],
    ids=["as many", "the oldest goes", "none is kept", "below zero", "no limit", "each by its own limit", "no limits"],
)
def test_runs_beyond_the_limits_go(limits: dict, expected: list[str]):
    assert [run.name for run in beyond_history(RUNS, lambda run: run.status.state.phase, limits)] == expected


def test_a_run_that_is_being_deleted_neither_counts_nor_goes_again():
    runs = [a_run("going", "Completed", 1, deleting=True), a_run("kept", "Completed", 2)]

    assert beyond_history(runs, lambda run: run.status.state.phase, {"Completed": 1}) == []


def test_of_the_same_second_the_name_decides_and_one_without_a_time_is_the_oldest():
    runs = [a_run("b", "Completed", 1), a_run("a", "Completed", 1), a_run("z", "Completed", None)]

    assert [run.name for run in beyond_history(runs, lambda run: run.status.state.phase, {"Completed": 1})] == [
        "z",
        "a",
    ]
