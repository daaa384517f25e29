"""The whole system in one process: the API server and every component on it, each with a client of its own.

`volcano up` runs it on SQLite and real time, tests run the same on memory and virtual time.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from volcano.api.core import ConfigMap, Service
from volcano.api.errors import AlreadyExists
from volcano.api.jobs.run_times import RunTimes
from volcano.api.meta import JSON, Key
from volcano.api.scheme import resource_type
from volcano.app.job_expansion import expand_job
from volcano.app.settings import SCHEDULER_CONFIGMAP
from volcano.app.system_settings import MASTERS as MASTERS
from volcano.app.system_settings import SystemSettings as SystemSettings
from volcano.controllers.service.gates import POD_GATES_FEATURE
from volcano.controllers.service.job_metrics import ControllerMetrics
from volcano.controllers.service.manager import make_controllers
from volcano.controllers.service.probing import ask
from volcano.controllers.service.routes import controller_routes
from volcano.controllers.service.settings import ControllerSettings
from volcano.embedded.agent.agent import Agent
from volcano.embedded.apiserver.kinds.services import SERVICES
from volcano.embedded.apiserver.server import ApiServer
from volcano.embedded.apiserver.store.contract import ObjectKey
from volcano.embedded.cluster.autoscaling.service import AutoscalingService
from volcano.embedded.cluster.controllers import make_cluster_controllers
from volcano.history.history import History
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock
from volcano.machinery.http_endpoints import Routes, dispatch
from volcano.machinery.local_zone import local_zone
from volcano.machinery.runner import Runner
from volcano.machinery.transport import InProcess, Request, Response, User
from volcano.scheduler.service.registry import Registry
from volcano.scheduler.service.routes import scheduler_routes
from volcano.scheduler.service.service import SchedulerService
from volcano.scheduler.service.settings import SchedulerSettings
from volcano.scheduler.service.shipped_configuration import DEFAULT_CONFIGURATION

CONFIGMAPS: Final = resource_type(ConfigMap)
HELM_RELEASE: Final[JSON] = {
    "labels": {"app.kubernetes.io/managed-by": "Helm"},
    "annotations": {"meta.helm.sh/release-name": "volcano", "meta.helm.sh/release-namespace": "volcano-system"},
}
"""The metadata by which `helm install volcano deploy/helm/volcano -n volcano-system` takes over an object that the
embedded system already made under a name that the chart has too; without it Helm refuses to install."""


class LocalService(msgspec.Struct, frozen=True):
    """A Service that is answered inside this process. On a real cluster the same path leads to the component's port."""

    name: str
    app: str
    port: int
    namespace: str = "volcano-system"

    def body(self) -> JSON:
        labels = {"app": self.app, **HELM_RELEASE["labels"]}
        metadata = {**HELM_RELEASE, "name": self.name, "namespace": self.namespace, "labels": labels}
        ports = [{"name": "metrics", "port": self.port, "protocol": "TCP", "targetPort": "metrics"}]
        return {"metadata": metadata, "spec": {"clusterIP": "None", "ports": ports}}


SCHEDULER_SERVICE: Final = LocalService("volcano-scheduler", "volcano-scheduler", 8080)
CONTROLLERS_SERVICE: Final = LocalService("volcano-controllers-service", "volcano-controllers", 8081)

AgentMaker = Callable[[Client], Agent]


class System:
    """Runs until cancelled. `ready` returns when everything that was asked for exists."""

    def __init__(
        self,
        server: ApiServer,
        clock: Clock,
        *,
        settings: SystemSettings | None = None,
        agents: Sequence[AgentMaker] = (),
    ) -> None:
        self.server, self.clock = server, clock
        self._settings = settings or SystemSettings()
        self.run_times = RunTimes()
        runner = make_controller_runner(self.client("vc-controller-manager"), clock, self._settings, self.run_times)
        self.controllers = runner
        self.cluster = make_cluster_runner(self.client("kube-controller-manager"), clock, self._settings)
        self.autoscaling = AutoscalingService(self.client("kube-controller-manager"), clock)
        self.scheduler = make_scheduler(self.client("vc-scheduler"), clock, self._settings)
        self.agents = [make(self.client(f"volcano-agent-{number}")) for number, make in enumerate(agents)]
        self.metrics = ControllerMetrics()
        self.history: History | None = None  # once app.local_history has opened it
        self._ready = asyncio.Event()
        self._deciding: list[asyncio.Task[None]] = []

    def client(self, component: str) -> Client:
        """Straight into the server, as the named component."""
        return Client(InProcess(self._handle, User(f"system:{component}", MASTERS)), agent=component)

    def client_of(self, user: User, agent: str) -> Client:
        """Straight into the server, with the rights of this user."""
        return Client(InProcess(self._handle, user), agent=agent)

    async def _handle(self, request: Request) -> Response:
        """Yield first, so that work in this process never starves clients on the network."""
        await self.clock.give_way()
        return await self.server.handle(request)

    @property
    def is_ready(self) -> bool:
        return self._ready.is_set()

    async def ready(self) -> None:
        await self._ready.wait()

    async def run(self) -> None:
        """Until cancelled; the server's start is the caller's."""
        bootstrap = self.client("volcano-bootstrap")
        await ensure_configuration(bootstrap)
        await self._answer_as(bootstrap, SCHEDULER_SERVICE, scheduler_routes(self.scheduler))
        await self._answer_as(bootstrap, CONTROLLERS_SERVICE, controller_routes(self.metrics))
        async with asyncio.TaskGroup() as group:
            deciders = (self.controllers, self.cluster, self.autoscaling, self.scheduler)
            self._deciding = [group.create_task(each.run()) for each in deciders]
            for agent in self.agents:
                group.create_task(agent.run())
            await self.controllers.synced()
            self.metrics.follow(self.controllers.mirror)
            await self.cluster.synced()
            await self.scheduler.ready()
            for agent in self.agents:
                await agent.ready()
            self._ready.set()

    async def stop_deciding(self) -> None:
        """End controllers and scheduler; the API server and the agents go on. Called before pods are ended."""
        for task in self._deciding:
            task.cancel()
        await asyncio.gather(*self._deciding, return_exceptions=True)

    async def _answer_as(self, client: Client, service: LocalService, routes: Routes) -> None:
        """Let the API server's service proxy call the routes without a port, under the name of a Service."""
        with contextlib.suppress(AlreadyExists):
            await client.create(resource_type(Service), service.body())
        self.server.backend.local_handlers[ObjectKey(SERVICES, service.namespace, service.name)] = dispatch(routes)


def make_controller_runner(
    client: Client, clock: Clock, chosen: SystemSettings, run_times: RunTimes | None = None
) -> Runner:
    """Volcano's controllers."""
    zone = chosen.local_zone or local_zone()
    settings = ControllerSettings(
        scheduler_names=chosen.scheduler_names, local_zone=zone, gates=chosen.gates, run_times=run_times
    )
    controllers = make_controllers(chosen.controllers, settings=settings)
    return Runner(client, clock, controllers, component="vc-controller-manager", workers=chosen.workers, probe=ask)


def make_cluster_runner(client: Client, clock: Clock, chosen: SystemSettings) -> Runner:
    """What kube-controller-manager does."""
    controllers = make_cluster_controllers(chosen.root_certificate)
    return Runner(client, clock, controllers, component="kube-controller-manager", workers=chosen.workers)


def make_scheduler(
    client: Client, clock: Clock, chosen: SystemSettings, registry: Registry | None = None
) -> SchedulerService:
    """Plugins are looked for on this machine unless a registry is given."""
    settings = SchedulerSettings(
        scheduler_conf=chosen.scheduler_conf,
        scheduler_configmap="" if chosen.scheduler_conf else chosen.scheduler_configmap,
        plugins_dir=chosen.plugins_dir,
        scheduler_names=chosen.scheduler_names,
        adopt_plain_pods=chosen.adopt_plain_pods,
        sharding_mode=chosen.sharding_mode,
        shard_name=chosen.shard_name,
        admits_by_gate=chosen.gates[POD_GATES_FEATURE],
    )
    return SchedulerService(client, clock, settings, expand_job=expand_job, registry=registry)


async def ensure_configuration(client: Client) -> None:
    """Create the scheduler's ConfigMap unless it exists."""
    key = Key.parse(SCHEDULER_CONFIGMAP.partition(":")[0])
    metadata = {**HELM_RELEASE, "name": key.name, "namespace": key.namespace}
    body = {"metadata": metadata, "data": {"volcano-scheduler.conf": DEFAULT_CONFIGURATION}}
    try:
        await client.create(CONFIGMAPS, body)
    except AlreadyExists:
        return
