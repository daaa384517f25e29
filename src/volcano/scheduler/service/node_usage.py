"""Measured load of nodes, from the source in the configuration's `metrics`: Prometheus, its adaptor, Elasticsearch.

Ten-minute averages of cpu and memory in percent. A source that does not answer leaves the last values to grow old.
"""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import aiohttp
import msgspec

from volcano.api.errors import ApiError
from volcano.api.quantity import parse_quantity
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock
from volcano.machinery.transport import Request
from volcano.scheduler.model import NodeUsage
from volcano.scheduler.model.durations import parse_duration
from volcano.scheduler.service.configuration import Configuration

log = logging.getLogger(__name__)
DEFAULT_INTERVAL: Final = timedelta(seconds=30)
MAX_RESPONSE_BYTES: Final = 64 * 1024 * 1024
TIMEOUT: Final = aiohttp.ClientTimeout(total=20)
FAILURES: Final = (aiohttp.ClientError, ApiError, OSError, TimeoutError, ValueError, msgspec.MsgspecError)

CPU_QUERY: Final = (
    'avg_over_time((clamp_min(100 - (avg by (instance) (rate(node_cpu_seconds_total{mode="idle"}[5m])) * 100), 0))'
    "[10m:30s])"
)
MEMORY_QUERY: Final = "100 * avg_over_time((1 - node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes)[10m:30s])"
CUSTOM_METRICS: Final = "/apis/custom.metrics.k8s.io/v1beta1/nodes/*/"


class NodeUsageReader:
    def __init__(
        self,
        client: Client,
        clock: Clock,
        configuration: Configuration,
        report: Callable[[Mapping[str, NodeUsage]], None],
    ) -> None:
        self._client, self._clock, self._configuration, self._report = client, clock, configuration, report

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            source = dict(self._configuration.current.metrics)
            if source.get("type"):
                try:
                    measured = await self.measure(source)
                    self._report(_usages(*measured, self._clock.now()))
                except FAILURES as error:
                    log.warning("node usage from %s: %s: %s", source.get("type"), type(error).__name__, error)
            await self._clock.sleep(interval_of(source))

    async def measure(self, source: Mapping[str, str]) -> tuple[dict[str, float], dict[str, float]]:
        """Percent of cpu and of memory by node."""
        match source["type"]:
            case "prometheus":
                return await self._prometheus(source, CPU_QUERY), await self._prometheus(source, MEMORY_QUERY)
            case "prometheus_adaptor":
                return await self._adaptor("node_cpu_usage_avg"), await self._adaptor("node_memory_usage_avg")
            case "elasticsearch":
                return await self._elasticsearch(source)
        raise ValueError(f"there is no source of measurements {source['type']!r}")

    async def _prometheus(self, source: Mapping[str, str], query: str) -> dict[str, float]:
        body = await _ask(source, "GET", "/api/v1/query", params={"query": query})
        found = body.get("data", {}).get("result", [])
        return {
            item["metric"]["instance"].partition(":")[0]: float(item["value"][1])
            for item in found
            if item.get("metric", {}).get("instance")
        }

    async def _adaptor(self, metric: str) -> dict[str, float]:
        response = await self._client.raw(Request("GET", CUSTOM_METRICS + metric))
        return dict(_custom(msgspec.json.decode(response.body)))

    async def _elasticsearch(self, source: Mapping[str, str]) -> tuple[dict[str, float], dict[str, float]]:
        index = source.get("elasticsearch.index") or "metricbeat-*"
        host = source.get("elasticsearch.hostnameFieldName") or "host.hostname"
        user, password = source.get("elasticsearch.username", ""), source.get("elasticsearch.password", "")
        averages = {
            "cpu": {"avg": {"field": "host.cpu.usage"}},
            "memory": {"avg": {"field": "system.memory.actual.used.pct"}},
        }
        query = {
            "size": 0,
            "query": {"range": {"@timestamp": {"gte": "now-10m", "lt": "now"}}},
            "aggs": {"nodes": {"terms": {"field": host, "size": 10000}, "aggs": averages}},
        }
        encoded = base64.b64encode(f"{user}:{password}".encode()).decode()
        headers = {"Authorization": f"Basic {encoded}"} if user else {}
        body = await _ask(source, "POST", f"/{index}/_search", json=query, headers=headers)
        buckets = body.get("aggregations", {}).get("nodes", {}).get("buckets", [])
        cpu, memory = (
            {b["key"]: 100.0 * b[part]["value"] for b in buckets if b.get(part, {}).get("value") is not None}
            for part in ("cpu", "memory")
        )
        return cpu, memory


def interval_of(source: Mapping[str, str]) -> timedelta:
    stated = parse_duration(source.get("interval", ""))
    return stated if stated is not None and stated > timedelta(0) else DEFAULT_INTERVAL


def _usages(cpu: Mapping[str, float], memory: Mapping[str, float], now: datetime) -> dict[str, NodeUsage]:
    return {name: NodeUsage(cpu.get(name, 0.0), memory.get(name, 0.0), now) for name in {*cpu, *memory}}


def _custom(body: Any) -> Iterator[tuple[str, float]]:
    for item in body.get("items", []):
        yield item["describedObject"]["name"], 100.0 * float(parse_quantity(item["value"]))


async def _ask(source: Mapping[str, str], method: str, path: str, **request: Any) -> Any:
    address = source.get("address", "").rstrip("/")
    if not address:
        raise ValueError("the section metrics names no address")
    verified = source.get("tls.insecureSkipVerify") != "true"
    async with (
        aiohttp.ClientSession(timeout=TIMEOUT) as session,
        session.request(method, address + path, ssl=verified, **request) as response,
    ):
        response.raise_for_status()
        async with asyncio.timeout(TIMEOUT.total):
            body = await response.content.read(MAX_RESPONSE_BYTES)
    return msgspec.json.decode(body)
