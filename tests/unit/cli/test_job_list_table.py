"""The list of jobs as a terminal shows it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from volcano.cli.job_list_table import terminal_table

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)


def job(name: str, phase: str, message: str = "", **counts: int) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "team", "creationTimestamp": "2026-01-01T11:55:00Z"},
        "spec": {"queue": "fast", "tasks": [{"replicas": 2}, {"replicas": 1}]},
        "status": {"state": {"phase": phase, "message": message}, **counts},
    }


def test_a_waiting_job_says_what_it_waits_for_and_a_running_one_how_many_pods_it_has() -> None:
    jobs = [job("a", "Running", running=2, succeeded=1), job("bb", "Pending", "3 of 3 pods unschedulable: cpu")]

    assert terminal_table(jobs, NOW, width=120, everywhere=False, colours=False).splitlines() == [
        "NAME  QUEUE  PHASE    PODS  AGE  STARTED  WAITS FOR",
        "a     fast   Running  3/3   5m   -",
        "bb    fast   Pending  0/3   5m   -        3 of 3 pods unschedulable: cpu",
    ]


def test_lines_fit_the_terminal_and_phases_are_coloured() -> None:
    (_, row) = terminal_table([job("a", "Pending", "x" * 200)], NOW, width=80, everywhere=True).splitlines()

    assert row.endswith("x…") and "\033[33mPending" in row
    assert len(row) - len("\033[33m\033[0m") <= 80
