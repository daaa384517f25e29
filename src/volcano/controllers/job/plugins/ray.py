"""ray: a head and workers that join it, and a Service in front of the head."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from volcano.api.batch import TASK_SPEC_KEY, TaskSpec
from volcano.api.core import Service
from volcano.api.meta import JSON, Key
from volcano.api.scheme import resource_type
from volcano.controllers.job.plugins.plugin import JobPluginBase, JobPluginError, address, main_containers, open_port
from volcano.machinery.plan import Delete, Plan, Ref

SERVICE: Final = resource_type(Service)
PORTS: Final = (("gcs", "port"), ("dashboard", "dashboardPort"), ("client-server", "clientPort"))


class Ray(JobPluginBase):
    name: ClassVar = "ray"

    @property
    def service_name(self) -> str:
        return f"{self.job.name}-head-svc"

    def _ports(self) -> Iterator[tuple[str, int]]:
        return ((name, self.arguments.number(argument)) for name, argument in PORTS)

    def check(self) -> None:
        self._head()

    def _head(self) -> TaskSpec:
        name = self.arguments.text("head")
        head = self.task(name)
        if head is None:
            raise JobPluginError(f"ray: the job has no task {name!r} for its head")
        return head

    def objects(self) -> Plan:
        ports = [{"name": name, "port": port, "targetPort": name, "protocol": "TCP"} for name, port in self._ports()]
        selector = {**self.selector, TASK_SPEC_KEY: self.arguments.text("head")}
        return (self.own(SERVICE, self.service_name, {"spec": {"selector": selector, "ports": ports}}),)

    def removal(self) -> Plan:
        return (Delete(Ref(SERVICE, Key(self.job.namespace, self.service_name))),)

    def on_pod(self, pod: JSON, task: TaskSpec, index: int) -> None:
        head = self._head()
        for container in main_containers(pod):
            if task is head and container.get("name") == self.arguments.text("headContainer"):
                self._start_head(container)
            is_worker = task.name == self.arguments.text("worker")
            if is_worker and container.get("name") == self.arguments.text("workerContainer"):
                target = f"{address(self.job, head, 0)}:{self.arguments.number('port')}"
                container["command"] = ["sh", "-c", f"ray start --block --address={target}"]

    def _start_head(self, container: JSON) -> None:
        for name, port in self._ports():
            open_port(container, name, port)
        ports = dict(self._ports())
        container["command"] = [
            "sh",
            "-c",
            f"ray start --head --block --dashboard-host=0.0.0.0 --port={ports['gcs']} "
            f"--dashboard-port={ports['dashboard']} --ray-client-server-port={ports['client-server']}",
        ]
