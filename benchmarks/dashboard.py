"""How long pages take and how large they are: 1,000 nodes, 5,000 jobs; and what the dashboard costs `volcano up`.

    python benchmarks/dashboard.py [--jobs 5000] [--nodes 1000]

The system is in memory on virtual time; the time of a page is that of the processor, from request to answer.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from typing import Any

from volcano.api.batch import Job
from volcano.api.scheme import resource_type
from volcano.dashboard.application import Dashboard, DashboardSettings
from volcano.dashboard.callers import Caller
from volcano.dashboard.logins import TokenLogin
from volcano.dashboard.sessions import OneTimeToken
from volcano.dashboard.watched import Watched
from volcano.dashboard.web import WebRequest
from volcano.machinery.clock import run_virtually
from volcano.machinery.ids import SeededIds
from volcano.machinery.transport import User
from volcano.scheduler.cache import FOLLOWED
from volcano.testing.system import virtual_system

JOBS = resource_type(Job)
ADMIN = User("admin", ("system:masters", "system:authenticated"))
ROUNDS = 5


def job(number: int) -> dict[str, Any]:
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    task = {"name": "worker", "replicas": 2, "template": {"spec": {"containers": [container]}}}
    metadata = {"name": f"job-{number:05}", "namespace": "default", "labels": {"team": f"team-{number % 20}"}}
    return {"metadata": metadata, "spec": {"minAvailable": 2, "queue": "default", "tasks": [task]}}


async def measure(jobs: int, nodes: int) -> None:
    async with virtual_system(nodes=nodes, capacity={"cpu": "4", "memory": "16Gi", "pods": "110"}) as system:
        for number in range(jobs):
            await system.client.create(JOBS, job(number))
        for _ in range(40):
            await asyncio.sleep(5)
        whole, clock = system.system, system.clock
        own, link = whole.client("dashboard"), OneTimeToken(SeededIds(1))
        owner = DashboardSettings(owner=lambda: Caller("admin", (), whole.client_of(ADMIN, "dashboard"), clock))
        watched = Watched(own, clock, dict.fromkeys(FOLLOWED, whole.scheduler.mirror))
        login = TokenLogin(own, clock, lambda token, user: whole.client_of(user, "dashboard"))
        dashboard = Dashboard(watched, login, clock, SeededIds(2), owner, link=link)
        answer = await dashboard.answer(WebRequest("GET", "/login", {"token": link.current}))
        cookie = answer.headers["set-cookie"].partition(";")[0]
        node = (await system.client.list_json(resource_type(_node()), limit="1"))["items"][0]["metadata"]["name"]
        paths: list[tuple[str, dict[str, str]]] = [
            ("/", {}),
            ("/jobs", {}),
            ("/jobs", {"q": "job-0001", "sort": "-cpu", "state": "waiting"}),
            ("/jobs", {"group": "label:team", "page": "60"}),
            ("/jobs/default/job-00001", {}),
            ("/queues", {}),
            ("/queues/default", {}),
            ("/nodes", {}),
            (f"/nodes/{node}", {}),
            ("/topology", {}),
            ("/decisions", {}),
            ("/settings", {}),
        ]
        print(f"{jobs} jobs, {nodes} nodes")
        for path, query in paths:
            times, size = [], 0
            for number in range(ROUNDS):
                request = WebRequest("GET", path, {**query, "round": str(number)}, headers={"cookie": cookie})
                began = time.process_time()
                answer = await dashboard.answer(request)
                times.append(time.process_time() - began)
                assert answer.status == 200, (path, answer.status, answer.body[:300])
                size = len(answer.body)
            text = "&".join(f"{name}={value}" for name, value in query.items())
            shown = f"{path}?{text}" if text else path
            print(f"{shown:<50} {sorted(times)[ROUNDS // 2] * 1000:7.1f} ms {size / 1000:7.1f} kB")
        await dashboard.close()


def _node() -> Any:
    from volcano.api.core import Node

    return Node


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=5000)
    parser.add_argument("--nodes", type=int, default=1000)
    given = parser.parse_args()
    run_virtually(measure(given.jobs, given.nodes))
