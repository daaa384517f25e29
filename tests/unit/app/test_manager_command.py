"""`volcano manager`: the flags of both components, and one set of watches for both."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta

from volcano.api.batch import Job
from volcano.api.core import Node, Pod
from volcano.api.scheme import resource_type
from volcano.app.controllers_command import controller_manager_command
from volcano.app.manager_command import JoinedComponents, manager_command
from volcano.app.scheduler_command import scheduler_command
from volcano.app.system import MASTERS
from volcano.controllers.service.manager import make_controllers
from volcano.embedded.apiserver.server import ApiServer
from volcano.embedded.apiserver.store.memory_store import MemoryStore
from volcano.machinery.client import Client
from volcano.machinery.clock import VirtualClock, run_virtually
from volcano.machinery.transport import InProcess, Request, Response, User
from volcano.scheduler.service.settings import SchedulerSettings

ADMINISTRATOR = User("tests", MASTERS)


def test_every_flag_of_scheduler_and_controllers_is_taken():
    known = {option for parameter in manager_command.params for option in parameter.opts}

    for command in (scheduler_command, controller_manager_command):
        taken = {option for parameter in command.params for option in parameter.opts}
        assert taken - known <= {"--check-conf"}, command.name


def test_a_job_is_made_into_pods_and_bound_and_each_kind_is_watched_once():
    watches: Counter[str] = Counter()
    bound: list[Pod] = []

    async def story() -> None:
        clock = VirtualClock()
        server = ApiServer(MemoryStore(), clock=clock)
        await server.start()

        async def counted(request: Request) -> Response:
            watches[request.path] += request.param("watch") == "true"
            return await server.handle(request)

        client = Client(InProcess(server.handle, ADMINISTRATOR))
        manager = JoinedComponents(InProcess(counted, ADMINISTRATOR), clock, SchedulerSettings(), make_controllers())
        running = asyncio.ensure_future(manager.run())
        await manager.scheduler.ready()
        await client.create(resource_type(Node), a_node())
        await client.create(resource_type(Job), a_job())
        async with asyncio.timeout(60):
            while len(bound) < 2:
                await clock.sleep(timedelta(seconds=1))
                bound[:] = [pod for pod in (await client.list(Pod, "default")).items if pod.spec.node_name]
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await server.close()

    run_virtually(story())

    assert {pod.spec.node_name for pod in bound} == {"n"}
    twice = {path for path, count in watches.items() if count > 1}
    assert {path.rpartition("/")[2] for path in twice} <= {"jobtemplates"}  # read in two ways by controllers
    assert watches["/api/v1/pods"] == 1


def a_node() -> dict:
    capacity = {"cpu": "8", "memory": "16Gi", "pods": "110"}
    ready = {"type": "Ready", "status": "True"}
    return {"metadata": {"name": "n"}, "status": {"capacity": capacity, "allocatable": capacity, "conditions": [ready]}}


def a_job() -> dict:
    container = {"name": "c", "image": "any", "resources": {"requests": {"cpu": "1"}}}
    task = {"name": "t", "replicas": 2, "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}
    spec = {"minAvailable": 2, "schedulerName": "volcano", "queue": "default", "tasks": [task]}
    return {"metadata": {"name": "j", "namespace": "default"}, "spec": spec}
