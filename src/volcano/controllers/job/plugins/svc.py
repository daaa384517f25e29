"""svc: pods of a job find each other by name: a headless Service, a list of hosts, and a wall around the job."""

from __future__ import annotations

from typing import ClassVar, Final

from volcano.api.batch import TaskSpec
from volcano.api.core import ConfigMap, Service
from volcano.api.meta import JSON, Key
from volcano.api.scheme import find_resource_type, resource_type
from volcano.controllers.job.plugins.plugin import JobPluginBase, addresses, all_containers, append
from volcano.machinery.plan import Delete, Patch, Plan, Ref

CONFIG_MAP: Final = resource_type(ConfigMap)
SERVICE: Final = resource_type(Service)
_POLICY = find_resource_type("networking.k8s.io", "NetworkPolicy")
assert _POLICY is not None
NETWORK_POLICY: Final = _POLICY

MOUNT_PATH: Final = "/etc/volcano"


class Svc(JobPluginBase):
    name: ClassVar = "svc"

    @property
    def hosts_name(self) -> str:
        return f"{self.job.name}-svc"

    @property
    def _has_policy(self) -> bool:
        return not self.arguments.switch("disable-network-policy")

    def hosts(self) -> dict[str, str]:
        """The content of the ConfigMap: for each task its hosts as a file, as one line, and their number."""
        found: dict[str, str] = {}
        for task in self.job.spec.tasks:
            names = addresses(self.job, task)
            found[f"{_underscored(task)}.host"] = "\n".join(names)
            found[f"VC_{_underscored(task).upper()}_HOSTS"] = ",".join(names)
            found[f"VC_{_underscored(task).upper()}_NUM"] = str(len(names))
        return found

    def objects(self) -> Plan:
        service = {
            "spec": {
                "clusterIP": "None",
                "selector": self.selector,
                "publishNotReadyAddresses": self.arguments.switch("publish-not-ready-addresses"),
            }
        }
        peers = {"podSelector": {"matchLabels": self.selector}}
        policy = {"spec": {**peers, "policyTypes": ["Ingress"], "ingress": [{"from": [peers]}]}}
        steps: Plan = (*self.refresh(), self.own(SERVICE, self.job.name, service))
        return (*steps, self.own(NETWORK_POLICY, self.job.name, policy)) if self._has_policy else steps

    def refreshed(self) -> JSON:
        return dict(self.hosts())

    def refresh(self) -> Plan:
        data = {"data": self.hosts()}
        return (
            self.own(CONFIG_MAP, self.hosts_name, data),
            Patch(Ref(CONFIG_MAP, Key(self.job.namespace, self.hosts_name)), data),
        )

    def removal(self) -> Plan:
        namespace, name = self.job.key
        steps: Plan = (
            Delete(Ref(CONFIG_MAP, Key(namespace, self.hosts_name))),
            Delete(Ref(SERVICE, Key(namespace, name))),
        )
        return (*steps, Delete(Ref(NETWORK_POLICY, Key(namespace, name)))) if self._has_policy else steps

    def on_pod(self, pod: JSON, task: TaskSpec, index: int) -> None:
        spec = pod["spec"]
        spec["hostname"] = spec.get("hostname") or pod["metadata"]["name"]
        spec["subdomain"] = spec.get("subdomain") or self.job.name
        env = self._host_variables() if self.arguments.switch("inject-hosts-env") else []
        append(spec, "volumes", {"name": self.hosts_name, "configMap": {"name": self.hosts_name}})
        for container in all_containers(pod):
            if env:
                append(container, "env", *env)
            append(container, "volumeMounts", {"name": self.hosts_name, "mountPath": MOUNT_PATH})

    def _host_variables(self) -> list[JSON]:
        names = (f"VC_{_underscored(task).upper()}_{what}" for task in self.job.spec.tasks for what in ("HOSTS", "NUM"))
        return [
            {"name": name, "valueFrom": {"configMapKeyRef": {"name": self.hosts_name, "key": name}}} for name in names
        ]


def _underscored(task: TaskSpec) -> str:
    return (task.name or "default").replace("-", "_")
