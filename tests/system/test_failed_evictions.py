"""Evictions and binds that the API server refuses: the scheduler decides again, and says nothing that is not so."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from tests.stories.builders import a_job, a_task
from tests.system.explain.asking import FOUR_CPUS, configured
from volcano.api.core import Pod
from volcano.machinery.transport import Request, Response
from volcano.testing.system import VirtualSystem, on_virtual_time

REASONS = {409: "Conflict", 500: "InternalError", 503: "ServiceUnavailable"}


def refusal(code: int) -> Response:
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": REASONS[code], "code": code}
    return Response(code, {}, msgspec.json.encode({**body, "message": "refused"}))


def a_priority_class(name: str, value: int) -> dict:
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    return {**kind, "metadata": {"name": name}, "value": value}


class Refusing:
    """Stands before the scheduler's requests, and refuses or loses some."""

    def __init__(self, system: VirtualSystem, method: str, path: str, answers: list[Response | None]) -> None:
        self._transport = system.system.scheduler.client._transport
        self._method, self._path, self._answers = method, path, answers
        self._send, self._transport.send = self._transport.send, self  # type: ignore[method-assign]

    async def __call__(self, request: Request) -> Response:
        if request.method != self._method or self._path not in request.path or not self._answers:
            return await self._send(request)
        answer = self._answers.pop(0)
        if answer is None:  # the request arrives, its answer does not
            await self._send(request)
            return refusal(500)
        return answer


@pytest.mark.parametrize("code", REASONS)
@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
def test_an_eviction_that_is_refused_is_decided_again(code: int, method: str, tmp_path: Path) -> None:
    settings = configured(tmp_path, "enqueue, allocate, preempt, backfill")

    @on_virtual_time(nodes=2, capacity=FOUR_CPUS, settings=settings)
    async def story(system: VirtualSystem) -> None:
        for name, value in (("low", 10), ("high", 100)):
            await system.apply(a_priority_class(name, value))
        await system.apply(a_job("low", a_task(replicas=8), minimum=1, priorityClassName="low"))
        await system.until(lambda: sum(pod.status.phase == "Running" for pod in system.pods("low")) == 8)
        refused = [refusal(code) for _ in range(3)]
        Refusing(system, method, "/pods/low-", list(refused))

        await system.apply(a_job("high", a_task(), priorityClassName="high"))

        await system.until(lambda: system.phase("high") == "Running", within=timedelta(seconds=30))
        assert sum(pod.status.phase == "Running" for pod in system.pods("low")) == 7


def test_a_pod_whose_bind_was_done_but_not_answered_is_not_said_to_be_unscheduled() -> None:
    @on_virtual_time(nodes=1, capacity=FOUR_CPUS)
    async def story(system: VirtualSystem) -> None:
        said: list[str] = []
        Refusing(system, "POST", "/binding", [None])
        system.mirror.listen(Pod, lambda change: said.extend(_unscheduled(change.new)))

        await system.apply(a_job("one", a_task()))

        await system.until(lambda: system.phase("one") == "Running")
        await system.settle()
        assert said == []


def _unscheduled(pod: Pod | None) -> list[str]:
    """What the pod says although it has its node."""
    if pod is None or not pod.spec.node_name:
        return []
    return [c.message for c in pod.status.conditions if c.type == "PodScheduled" and c.status == "False"]
