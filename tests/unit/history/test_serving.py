"""The read API: its parameters, its errors, and that a caller sees no more than their rights on jobs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from volcano.api.history_records import HISTORY_PATH, JobRecord
from volcano.history.batch import RowBatch
from volcano.history.commit import commit
from volcano.history.database import MEMORY, Database
from volcano.history.history import History
from volcano.history.serving import HistoryPages
from volcano.machinery.clock import SystemClock
from volcano.machinery.transport import Request, User

T0 = datetime(2026, 1, 5, tzinfo=UTC)
ADMIN, ADA, EVE = User("admin"), User("ada"), User("eve")


class Rights:
    """ada may list jobs in team-a, admin everything, eve nothing."""

    async def may_list(self, user: User, group: str, resource: str, namespace: str = "") -> bool:
        return user == ADMIN or (user == ADA and resource == "jobs" and namespace == "team-a")


@pytest.fixture
def pages() -> HistoryPages:
    database, clock = Database(MEMORY), SystemClock()
    database.prepare()
    batch = RowBatch()
    for namespace in ("team-a", "team-b"):
        batch.jobs[namespace] = JobRecord(uid=f"uid-{namespace}", namespace=namespace, name="job", created=T0)
    commit(database, batch)
    return HistoryPages(History(database, clock), Rights(), clock)


async def get(pages: HistoryPages, page: str, user: User = ADMIN, **query: str) -> tuple[int, Any]:
    answer = await pages.answer(Request("GET", f"{HISTORY_PATH}/{page}", tuple(query.items()), user=user))
    return answer.status, msgspec.json.decode(answer.body)


@pytest.mark.parametrize(("user", "seen"), [(ADMIN, ["team-a", "team-b"]), (ADA, ["team-a"]), (EVE, [])])
async def test_jobs_are_those_of_namespaces_in_which_the_caller_may_list_jobs(pages: HistoryPages, user: User, seen):
    status, page = await get(pages, "jobs", user, sort="namespace", descending="false")

    assert status == 200
    assert [job["namespace"] for job in page.get("jobs", [])] == seen
    assert page.get("total", 0) == len(seen)


async def test_a_namespace_that_is_asked_for_by_name_stays_hidden(pages: HistoryPages):
    _, page = await get(pages, "jobs", ADA, namespace="team-b")
    status, _ = await get(pages, "jobs/uid-team-b", ADA)
    _, counts = await get(pages, "job-counts", ADA, by="namespace")

    assert page.get("jobs", []) == []
    assert status == 404
    assert [count["group"] for count in counts] == ["team-a"]


async def test_visibility_cannot_be_given_as_a_parameter(pages: HistoryPages):
    status, answer = await get(pages, "jobs", EVE, visible="team-a")

    assert status == 400
    assert "visible: is not a parameter" in answer["message"]


@pytest.mark.parametrize("page", ["nodes", "queues"])
async def test_samples_need_the_right_to_list_what_is_sampled(pages: HistoryPages, page: str):
    assert (await get(pages, page, ADMIN))[0] == 200
    assert (await get(pages, page, ADA))[0] == 403


async def test_usage_is_of_what_the_caller_may_see(pages: HistoryPages):
    asked = {"since": "2026-01-04T00:00:00Z", "until": "2026-01-06T00:00:00Z", "by": "namespace"}

    assert [row["namespace"] for row in (await get(pages, "usage", ADMIN, **asked))[1]] == ["team-a", "team-b"]
    assert [row["namespace"] for row in (await get(pages, "usage", ADA, **asked))[1]] == ["team-a"]


@pytest.mark.parametrize(
    ("page", "query", "message"),
    [
        ("jobs", {"since": "yesterday"}, "since: 'yesterday' is not a time"),
        ("jobs", {"limit": "many"}, "limit: "),
        ("jobs", {"limit": "1000000"}, "limit: must be between"),
        ("jobs", {"colour": "red"}, "colour: is not a parameter"),
        ("usage", {"by": "moon"}, "by: must be some of"),
        ("usage", {"by": "day", "zone": "../etc/passwd"}, "zone: "),
        ("job-counts", {"by": "1; DROP TABLE jobs"}, "by: must be one of"),
        ("moment", {}, "at: "),
    ],
    ids=str,
)
async def test_bad_parameters_are_refused_by_name(pages: HistoryPages, page: str, query: dict[str, str], message: str):
    status, answer = await get(pages, page, **query)

    assert status == 400
    assert answer["message"].startswith(message)


async def test_an_unknown_page_is_not_found(pages: HistoryPages):
    assert (await get(pages, "secrets"))[0] == 404


async def test_nothing_can_be_written(pages: HistoryPages):
    answer = await pages.answer(Request("DELETE", f"{HISTORY_PATH}/jobs", user=ADMIN))

    assert answer.status == 405


async def test_a_past_moment_leaves_out_what_may_not_be_listed(pages: HistoryPages):
    status, then = await get(pages, "moment", ADA, at="2026-01-05T01:00:00Z")

    assert status == 200
    assert [count["group"] for count in then["jobs"]] == [""]
    assert then["jobs"][0]["count"] == 1
    assert "nodes" not in then
