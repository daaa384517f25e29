"""Where measured load comes from, each source by what it answers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from volcano.machinery.client import Client
from volcano.machinery.clock import EPOCH, VirtualClock, run_virtually
from volcano.machinery.http_endpoints import json_response, serving
from volcano.machinery.transport import InProcess, Request, Response, User
from volcano.scheduler.model import NodeUsage
from volcano.scheduler.service.configuration import Configuration
from volcano.scheduler.service.node_usage import NodeUsageReader, interval_of
from volcano.scheduler.service.registry import load_registry

CONFIGURATION = """
actions: allocate
tiers: []
metrics:
  type: prometheus_adaptor
  interval: 10s
"""


class Asked:
    """A source over HTTP that remembers what it was asked."""

    def __init__(self, answer: Any) -> None:
        self.answer, self.requests = answer, []

    async def handle(self, request: Request) -> Response:
        body = msgspec.json.decode(request.body) if request.body else {}
        self.requests.append((request.path, dict(request.query), body, request.headers.get("authorization", "")))
        return json_response(self.answer)


def usage(handler: Any = None, tell: Any = None, text: str = "") -> NodeUsageReader:
    async def nobody(_request: Request) -> Response:
        return Response(404)

    configuration = Configuration(load_registry())
    if text:
        configuration.offer(text, "test")
    client = Client(InProcess(handler or nobody, User("test")))
    return NodeUsageReader(client, VirtualClock(), configuration, tell or (lambda _usage: None))


async def test_prometheus_is_asked_for_ten_minute_averages():
    source = Asked({"data": {"result": [{"metric": {"instance": "n1:9100"}, "value": [1, "42.5"]}]}})
    async with serving("127.0.0.1:0", {("GET", "/api/v1/query"): source.handle}) as port:
        measured = await usage().measure({"type": "prometheus", "address": f"http://127.0.0.1:{port}/"})

    assert measured == ({"n1": 42.5}, {"n1": 42.5})
    cpu, memory = (query["query"] for _, query, _, _ in source.requests)
    assert "node_cpu_seconds_total" in cpu
    assert "node_memory_MemAvailable_bytes" in memory
    assert "[10m:30s]" in cpu


async def test_elasticsearch_is_asked_by_host_and_says_fractions():
    bucket = {"key": "n1", "cpu": {"value": 0.25}, "memory": {"value": None}}
    source = Asked({"aggregations": {"nodes": {"buckets": [bucket]}}})
    async with serving("127.0.0.1:0", {("POST", "/beats/_search"): source.handle}) as port:
        measured = await usage().measure(
            {
                "type": "elasticsearch",
                "address": f"http://127.0.0.1:{port}",
                "elasticsearch.index": "beats",
                "elasticsearch.hostnameFieldName": "agent.name",
                "elasticsearch.username": "u",
                "elasticsearch.password": "p",
            }
        )

    assert measured == ({"n1": 25.0}, {})
    ((_, _, body, authorization),) = source.requests
    assert body["aggs"]["nodes"]["terms"]["field"] == "agent.name"
    assert authorization.startswith("Basic ")


async def adaptor(request: Request) -> Response:
    share = "500m" if request.path.endswith("cpu_usage_avg") else "0.25"
    body = f'{{"items": [{{"describedObject": {{"name": "n1"}}, "value": "{share}"}}]}}'
    return Response(200, {}, body.encode())


async def test_the_adaptor_is_asked_through_the_api_server():
    assert await usage(adaptor).measure({"type": "prometheus_adaptor"}) == ({"n1": 50.0}, {"n1": 25.0})


def test_what_is_measured_is_told_in_every_interval_with_its_time():
    told: list[Mapping[str, NodeUsage]] = []

    async def story() -> None:
        running = asyncio.ensure_future(usage(adaptor, told.append, CONFIGURATION).run())
        await VirtualClock().sleep(timedelta(seconds=25))
        running.cancel()

    run_virtually(story())

    assert [next(iter(each.values())).measured for each in told] == [
        EPOCH + timedelta(seconds=10 * n) for n in range(3)
    ]
    assert told[0]["n1"] == NodeUsage(50.0, 25.0, EPOCH)


def test_a_source_that_does_not_answer_is_asked_again():
    told: list[Mapping[str, NodeUsage]] = []
    answers = iter([Response(503), Response(503)])

    async def failing(request: Request) -> Response:
        return next(answers, None) or await adaptor(request)

    async def story() -> None:
        running = asyncio.ensure_future(usage(failing, told.append, CONFIGURATION).run())
        await VirtualClock().sleep(timedelta(seconds=45))
        running.cancel()

    run_virtually(story())

    assert told


@pytest.mark.parametrize("source", [{"type": "guess"}, {"type": "prometheus"}])
async def test_a_source_that_is_not_one_is_an_error(source):
    with pytest.raises(ValueError, match=r"no source|no address"):
        await usage().measure(source)


@pytest.mark.parametrize(("text", "seconds"), [("", 30), ("5s", 5), ("0s", 30), ("-1s", 30), ("soon", 30), ("1m", 60)])
def test_the_interval_is_a_positive_duration_or_thirty_seconds(text, seconds):
    assert interval_of({"interval": text}) == timedelta(seconds=seconds)
