"""What the scheduler answers over HTTP: explanations, simulations, its last cycles, metrics, its state, recordings.

`volcano scheduler` serves these routes at --listen-address; in the embedded system the API server's service proxy
calls them without a port (services/volcano-scheduler/proxy/simulate).
"""

from __future__ import annotations

import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec

from volcano.machinery.http_endpoints import Routes, health_route, json_response, metrics_route
from volcano.machinery.transport import Request, Response
from volcano.scheduler.service.question_limits import QuestionLimits, TooManyQuestions
from volcano.scheduler.service.service import SchedulerService


def scheduler_routes(service: SchedulerService, dump_dir: str = "") -> Routes:
    """`dump_dir` is where a recording goes; the machine's temporary directory when empty."""

    async def state(_request: Request) -> Response:
        return json_response(service.state())

    shown = metrics_route(service.metrics.registry)

    async def metrics(request: Request) -> Response:
        service.metrics.set("configuration_refused", float(bool(service.configuration.problem)))
        return await shown(request)

    async def record(_request: Request) -> Response:
        place = dump_dir or tempfile.gettempdir()
        service.recordings.request(place)
        return json_response({"directory": str(Path(place))}, 202)

    limits = QuestionLimits(service.clock)

    async def answered(request: Request, answer: Callable[[Any], Awaitable[Any]]) -> Response:
        try:
            with limits.admitted(request.user):
                return json_response(await answer(msgspec.json.decode(request.body)))
        except TooManyQuestions as error:
            refusal = json_response({"error": str(error)}, 429)
            return Response(429, {**refusal.headers, "retry-after": str(error.seconds)}, refusal.body)
        except (ValueError, RecursionError) as error:
            return json_response({"error": str(error)}, 400)

    async def simulate(request: Request) -> Response:
        return await answered(request, service.simulate)

    async def explain(request: Request) -> Response:
        return await answered(request, service.explain)

    async def expected_starts(_request: Request) -> Response:
        return json_response(await service.expected_starts())

    async def cycles(request: Request) -> Response:
        limit, before = request.param("limit", "50"), request.param("before", "0")
        if not (limit.isdecimal() and before.isdecimal()):
            return json_response({"error": "limit and before must be numbers"}, 400)
        return json_response({"cycles": service.past_cycles.newest(int(limit), int(before))})

    async def priorities(_request: Request) -> Response:
        return json_response(await service.job_priorities())

    return {
        ("POST", "/explain"): explain,
        ("POST", "/simulate"): simulate,
        ("GET", "/job-priorities"): priorities,
        ("GET", "/expected-starts"): expected_starts,
        ("GET", "/cycles"): cycles,
        ("GET", "/metrics"): metrics,
        ("GET", "/state"): state,
        ("POST", "/record"): record,
        ("GET", "/healthz"): health_route(),
    }
