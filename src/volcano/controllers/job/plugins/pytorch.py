"""pytorch: what torch.distributed needs to find its master, and on request workers that wait for it."""

from __future__ import annotations

from typing import ClassVar, Final

from volcano.api.batch import TaskSpec
from volcano.api.meta import JSON
from volcano.controllers.job.plugins.plugin import JobPluginBase, add_env, address, append, main_containers, open_port

WAITER: Final = "wait-for-master"
_SCRIPT: Final = """\
waited=0
until nc -z {master} {port} 2>/dev/null || (exec 3<>/dev/tcp/{master}/{port}) 2>/dev/null; do
  if [ "$waited" -ge {timeout} ]; then
    echo "the master {master}:{port} did not answer within {timeout} seconds" >&2
    exit 1
  fi
  sleep 2
  waited=$((waited + 2))
done
"""


class PyTorch(JobPluginBase):
    name: ClassVar = "pytorch"

    def on_pod(self, pod: JSON, task: TaskSpec, index: int) -> None:
        names = {"master": self.arguments.text("master"), "worker": self.arguments.text("worker")}
        master, port = self.task(names["master"]), self.arguments.number("port")
        if master is None:
            return
        variables = {
            "MASTER_ADDR": address(self.job, master, 0),
            "MASTER_PORT": str(port),
            "WORLD_SIZE": str(master.replicas + self.replicas(names["worker"])),
        }
        if task.name == names["worker"]:
            variables["RANK"] = str(index + 1)
        elif task.name == names["master"]:
            variables["RANK"] = "0"
        for container in main_containers(pod):
            open_port(container, "pytorchjob-port", port)
            for name, value in variables.items():
                add_env(container, name, value)
        if task.name == names["worker"] and self.arguments.switch("wait-master-enabled"):
            self._wait(pod, variables["MASTER_ADDR"], port)

    def _wait(self, pod: JSON, master: str, port: int) -> None:
        present = pod["spec"].get("initContainers") or []
        if any(container.get("name") == WAITER for container in present):
            return
        script = _SCRIPT.format(master=master, port=port, timeout=self.arguments.number("wait-master-timeout"))
        image = self.arguments.text("wait-master-image")
        append(pod["spec"], "initContainers", {"name": WAITER, "image": image, "command": ["sh", "-c", script]})
