"""Filters, order, groups and pages of the list of jobs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from volcano.dashboard.job_rows import JobRow
from volcano.dashboard.jobs_page import select

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def row(name: str, state: str = "waiting", **more: object) -> JobRow:
    phase = {"waiting": "Pending", "running": "Running", "failed": "Failed"}[state]
    given = {"queue": "default", "created": NOW - timedelta(hours=1), **more}
    return JobRow("default", name, phase=phase, state=state, **given)  # type: ignore[arg-type]


ROWS = [
    row("a", queue="one", requests={"cpu": "500m"}, reason="too large", cause="size"),
    row("b", "running", queue="two", requests={"cpu": "2"}, labels={"team": "red"}),
    row("c", "failed", queue="two", requests={"cpu": "1"}, labels={"team": "blue"}),
]


def names(**query: str) -> list[str]:
    return [each.name for each in select(list(ROWS), query, NOW).rows]


def test_filters_leave_what_matches_all_of_them():
    assert names(queue="two") == ["b", "c"] or names(queue="two") == ["c", "b"]
    assert names(queue="two", state="failed") == ["c"]
    assert names(state="Running") == ["b"]
    assert names(q="TOO LARGE") == ["a"]
    assert names(label="team=red") == ["b"]
    assert names(cause="size") == ["a"]
    assert names(queue="none") == []


def test_the_counts_of_states_do_not_depend_on_the_chosen_state():
    found = select(list(ROWS), {"queue": "two", "state": "failed"}, NOW)

    assert (found.states["running"], found.states["failed"], found.total) == (1, 1, 1)


def test_amounts_are_ordered_by_size_and_not_by_text():
    assert names(sort="cpu") == ["a", "c", "b"]
    assert names(sort="-cpu") == ["b", "c", "a"]


def test_groups_count_states_and_largest_come_first():
    found = select(list(ROWS), {"group": "queue"}, NOW).groups
    labels = select(list(ROWS), {"group": "label:team"}, NOW).groups

    assert [(each.value, each.jobs) for each in found] == [("two", 2), ("one", 1)]
    assert {each.value for each in labels} == {"red", "blue", "(none)"}


def test_pages_are_bounded_whatever_the_address_says():
    many = [row(f"j{number:03}") for number in range(120)]

    last = select(list(many), {"page": "99999999999999999999", "size": "999999", "sort": "name"}, NOW)
    odd = select(list(many), {"page": "-3", "size": "zwölf", "sort": "nonsense"}, NOW)

    assert (last.page, last.pages, len(last.rows)) == (2, 2, 20)
    assert (odd.page, odd.size) == (1, 50)
