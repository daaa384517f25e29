"""The system that jobs are submitted to: create, find and list, with the caller's own rights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from volcano.api import batch, scheduling
from volcano.api.errors import AlreadyExists
from volcano.api.meta import Key
from volcano.api.scheme import resource_type
from volcano.machinery.client import Client
from volcano.machinery.kubeconfig import load_endpoint_or_embedded
from volcano.machinery.one_shot import OneShot, finish
from volcano.sdk.running import RunningJob

if TYPE_CHECKING:
    from volcano.sdk.job import Job

JOBS = resource_type(batch.Job)


class ClusterClient:
    """One API server, found by the usual rules or by a kubeconfig; the embedded system is found by itself."""

    def __init__(self, *, kubeconfig: str | None = None) -> None:
        self._client = Client(OneShot(load_endpoint_or_embedded(kubeconfig)), agent="volcano-sdk")

    def submit(self, job: Job) -> RunningJob:
        try:
            finish(self._client.create(JOBS, job.manifest()))
        except AlreadyExists as error:
            raise AlreadyExists(f"{error.message}; delete that job first, or choose another name") from error
        return self.job(job.name, namespace=job.namespace)

    def job(self, name: str, *, namespace: str = "default") -> RunningJob:
        """A job that was submitted before, by anyone."""
        return RunningJob(self._client, Key(namespace, name))

    def jobs(self, *, namespace: str = "", labels: str = "") -> list[batch.Job]:
        """The jobs of a namespace, or of all; `labels` is a label selector."""
        return finish(self._client.list(batch.Job, namespace, labels=labels)).items

    def queues(self) -> list[scheduling.Queue]:
        return finish(self._client.list(scheduling.Queue)).items


def queues(*, kubeconfig: str | None = None) -> list[scheduling.Queue]:
    """The queues with their limits and what they hold."""
    return ClusterClient(kubeconfig=kubeconfig).queues()
