"""mpi: the master knows its workers, and every container opens the port on which ssh listens."""

from __future__ import annotations

from typing import ClassVar

from volcano.api.batch import TaskSpec
from volcano.api.meta import JSON
from volcano.controllers.job.plugins.plugin import JobPluginBase, add_env, addresses, all_containers, open_port


class Mpi(JobPluginBase):
    name: ClassVar = "mpi"

    def on_pod(self, pod: JSON, task: TaskSpec, index: int) -> None:
        is_master = task.name == self.arguments.text("master")
        workers = self.task(self.arguments.text("worker"))
        if is_master and workers is None:
            return
        for container in all_containers(pod):
            open_port(container, "mpijob-port", self.arguments.number("port"))
            if is_master and workers is not None:
                add_env(container, "MPI_HOST", ",".join(addresses(self.job, workers)))
