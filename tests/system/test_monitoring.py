"""A real Prometheus reads all components with the shipped configuration and rules, and every query has an answer."""

from __future__ import annotations

import asyncio
import re
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.needs import program
from volcano.api.batch import Job
from volcano.api.meta import JSON, Key
from volcano.api.scheme import resource_type
from volcano.app import metrics_ports
from volcano.app.components import running_system
from volcano.app.monitoring_files import DASHBOARD, RULES, write_for, write_shared
from volcano.app.node_options import NodeOptions
from volcano.app.system import LocalService
from volcano.history.retention import RetentionSettings
from volcano.install.monitoring import ALERTS, PANELS, RECORDINGS, dashboard
from volcano.machinery.clock import SystemClock
from volcano.machinery.https_server import bind

ROOT = Path(__file__).resolve().parents[2]
NAMES = re.compile(r"\b(?:volcano_\w+|volcano:[\w:]+|apiserver_\w+|up)\b")
JOB: JSON = {
    "metadata": {"name": "measured", "namespace": "default"},
    "spec": {"tasks": [{"name": "w", "replicas": 2, "template": {"spec": {"restartPolicy": "Never", "containers": [
        {"name": "c", "image": "busybox", "resources": {"requests": {"cpu": "1"}}}]}}}]},
}  # fmt: skip


def free_ports(count: int) -> list[int]:
    sockets = [bind("127.0.0.1", None) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


@pytest.fixture
async def prometheus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[str]:
    """Its address, while it reads a system that has run a job."""
    scheduler, controllers, port = free_ports(3)
    monkeypatch.setattr(metrics_ports, "SCHEDULER_SERVICE", LocalService("volcano-scheduler", "s", scheduler))
    monkeypatch.setattr(metrics_ports, "CONTROLLERS_SERVICE", LocalService("volcano-controllers", "c", controllers))
    clock, data = SystemClock(), tmp_path / "data"
    nodes = NodeOptions(nodes=0, simulated_nodes=2)
    history = RetentionSettings()
    async with running_system(data, nodes, clock, port=0, ephemeral=True, history=history) as system:
        addresses = {"scheduler": f"127.0.0.1:{scheduler}", "controllers": f"127.0.0.1:{controllers}"}
        configuration = write_for(data, tmp_path / "monitoring", clock, **addresses)
        configuration.write_text(configuration.read_text().replace("15s", "1s"))
        process = subprocess.Popen(  # noqa: ASYNC220
            ["prometheus", f"--config.file={configuration}", f"--storage.tsdb.path={tmp_path / 'tsdb'}",
             f"--web.listen-address=127.0.0.1:{port}"],
            stdout=subprocess.DEVNULL, stderr=(tmp_path / "prometheus.log").open("wb"),
        )  # fmt: skip
        try:
            await system.client("test").create(resource_type(Job), JOB)
            while True:
                job = await system.client("test").get(Job, Key("default", "measured"))
                if job.status.state.phase in ("Running", "Completed"):
                    break
                await asyncio.sleep(0.1)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()
            process.wait()


async def query(session: aiohttp.ClientSession, address: str, expression: str) -> list[Any]:
    try:
        async with session.get(f"{address}/api/v1/query", params={"query": expression}) as answer:
            body = await answer.json()
    except aiohttp.ClientError:
        return []  # it is starting
    assert body.get("status") == "success" or answer.status >= 500, (expression, body)
    return list((body.get("data") or {}).get("result") or [])


@program("prometheus", "prometheus")
async def test_every_query_of_rules_and_dashboard_has_an_answer(prometheus: str):
    wanted = {each.expression for each in RECORDINGS} | {each.record for each in RECORDINGS}
    wanted |= {expression for panel in PANELS for expression, _ in panel.expressions}
    wanted |= {name for alert in ALERTS for name in NAMES.findall(alert.expression)}  # a quiet alert has no answer
    wanted |= {f'up{{job="volcano-{part}"}} == 1' for part in ("scheduler", "controllers", "apiserver")}
    missing = set(wanted)
    async with aiohttp.ClientSession() as session:
        for _ in range(300):
            missing = {each for each in missing if not await query(session, prometheus, each)}
            if not missing:
                break
            await asyncio.sleep(0.2)

        assert missing == set()
        async with session.get(f"{prometheus}/api/v1/rules") as answer:
            groups = (await answer.json())["data"]["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert len(rules) == len(RECORDINGS) + len(ALERTS)
    assert {rule["health"] for rule in rules} == {"ok"}


@program("promtool", "prometheus")
def test_the_shipped_rules_are_sound():
    done = subprocess.run(
        ["promtool", "check", "rules", ROOT / "deploy" / "monitoring" / RULES],
        capture_output=True,
        text=True,
        timeout=30,
    )

    assert done.returncode == 0, done.stderr


def test_the_shipped_files_are_those_that_the_code_writes(tmp_path: Path):
    write_shared(tmp_path)

    shipped = ROOT / "deploy" / "monitoring"
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        path.name: path.read_text() for path in shipped.iterdir()
    }


def test_every_panel_has_its_place():
    places = [panel["gridPos"] for panel in dashboard()["panels"]]

    assert DASHBOARD.endswith(".json")
    assert len({(place["x"], place["y"]) for place in places}) == len(PANELS)
    assert all(place["x"] + place["w"] <= 24 for place in places)
