"""What the scheduler answers over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import msgspec
import pytest

from volcano.app.job_expansion import expand_job
from volcano.machinery.client import Client
from volcano.machinery.clock import SystemClock
from volcano.machinery.http_endpoints import serving
from volcano.machinery.transport import InProcess, Request, Response, User
from volcano.scheduler.service import question_limits
from volcano.scheduler.service.routes import scheduler_routes
from volcano.scheduler.service.service import SchedulerService


async def _nobody(_request: Request) -> Response:
    return Response(404)


@pytest.fixture
async def service() -> SchedulerService:
    return SchedulerService(Client(InProcess(_nobody, User("test"))), SystemClock(), expand_job=expand_job)


@pytest.fixture
async def address(service: SchedulerService, tmp_path: Path) -> AsyncIterator[str]:
    async with serving("127.0.0.1:0", scheduler_routes(service, str(tmp_path))) as port:
        yield f"http://127.0.0.1:{port}"


async def test_its_state_is_told(address: str):
    async with aiohttp.ClientSession() as session, session.get(f"{address}/state") as response:
        state = await response.json()

    assert (state["ready"], state["turns"]) == (False, 0)


async def test_metrics_are_shown_under_volcanos_names(address: str, service: SchedulerService):
    service.metrics.set("queue_share", 0.5, "q")

    async with aiohttp.ClientSession() as session, session.get(f"{address}/metrics") as response:
        assert 'volcano_queue_share{queue_name="q"} 0.5' in await response.text()


@pytest.mark.parametrize(("body", "status"), [(b"{", 400), (b"{}", 400), (b'{"pods":[{"spec":{}}]}', 200)])
async def test_simulations_are_answered_or_refused(address: str, body: bytes, status: int):
    async with aiohttp.ClientSession() as session, session.post(f"{address}/simulate", data=body) as response:
        answer = await response.json(content_type=None)

    assert response.status == status
    assert ("error" in answer) == (status == 400)


async def test_a_recording_of_the_next_cycle_can_be_asked_for(address: str, service: SchedulerService, tmp_path: Path):
    before = service.recordings.is_due
    async with aiohttp.ClientSession() as session, session.post(f"{address}/record") as response:
        place = (await response.json())["directory"]

    assert (before, service.recordings.is_due, place) == (False, True, str(tmp_path))


async def test_too_many_questions_are_refused_with_the_time_to_wait(
    service: SchedulerService, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(question_limits, "QUESTIONS_AT_ONCE", 2)
    monkeypatch.setattr(question_limits, "QUESTIONS_PER_SECOND", 0.001)
    ask = scheduler_routes(service)["POST", "/simulate"]
    request = Request("POST", "/simulate", body=b'{"pods":[{"spec":{}}]}', user=User("anne"))

    answers = [await ask(request) for _ in range(3)]

    assert [answer.status for answer in answers] == [200, 200, 429]
    assert int(answers[2].headers["retry-after"]) > 1
    assert (await ask(msgspec.structs.replace(request, user=User("ben")))).status == 200
