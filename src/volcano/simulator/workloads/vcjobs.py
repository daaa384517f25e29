"""Simulated jobs from full Volcano Job manifests, defaulted and validated as admission does it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from volcano.admission.job_defaults import mutate_job
from volcano.admission.jobs import validate_job
from volcano.admission.review import Settings
from volcano.api import batch
from volcano.api.indexes import QUEUES_BY_PARENT
from volcano.api.jobs.estimates import ESTIMATE_KEY, stated_estimate
from volcano.api.meta import JSON
from volcano.api.pods.amounts import to_wire
from volcano.api.pods.requests import pod_requests, read_resources
from volcano.api.scheduling import Queue
from volcano.api.scheme import resource_type
from volcano.controllers.job.view import task_name
from volcano.machinery.admission import Attributes
from volcano.machinery.world import Mirror
from volcano.simulator.fields import InvalidScenario
from volcano.simulator.jobs import Role, WorkloadJob
from volcano.simulator.making import NAMESPACE

JOB: Final = resource_type(batch.Job)


class ManifestReader:
    """Reads the Jobs of a scenario; the same template is defaulted and validated once."""

    def __init__(self, queues: Iterable[Queue]) -> None:
        self._world = Mirror(indexes=QUEUES_BY_PARENT)
        for queue in queues:
            self._world.put(queue)

    def read(self, body: Any, path: str, name: str) -> batch.Job:
        """A manifest, or its spec alone, as the Job of that name."""
        if not isinstance(body, dict):
            raise InvalidScenario(f"{path}: must be a Job manifest")
        manifest: JSON = body if "spec" in body else {"spec": body}
        metadata = {**(manifest.get("metadata") or {}), "name": name, "namespace": NAMESPACE, "uid": name}
        whole: JSON = {**manifest, "metadata": metadata}
        for rule in (mutate_job, validate_job):
            answer = rule(Attributes("CREATE", JOB, name, NAMESPACE, whole), self._world, Settings())
            if answer.denial:
                raise InvalidScenario(f"{path}: {answer.denial}")
            whole = answer.changed(whole) or whole
        return msgspec.convert(whole, batch.Job, strict=False)


def job_of(manifest: batch.Job, *, submit: float, run_time: float, estimate: float | None) -> WorkloadJob:
    """The manifest under its own name, as a job of the simulation."""
    stated = stated_estimate({**manifest.annotations, **_spec_estimate(manifest)})
    if estimate is None and stated is not None:
        estimate = stated.total_seconds()
    return WorkloadJob(
        name=manifest.name,
        submit=submit,
        run_time=run_time,
        roles=tuple(
            Role(
                task_name(task),
                task.replicas,
                to_wire(pod_requests(read_resources(_spec(task)))),
                spec={key: value for key, value in _spec(task).items() if key == "nodeSelector"},
            )
            for task in manifest.spec.tasks
        ),
        estimate=estimate,
        queue=manifest.spec.queue,
        priority_class=manifest.spec.priority_class_name,
        min_available=manifest.spec.min_available,
        manifest=manifest,
    )


def renamed(manifest: batch.Job, name: str) -> batch.Job:
    metadata = msgspec.structs.replace(manifest.metadata, name=name, uid=name)
    return msgspec.structs.replace(manifest, metadata=metadata)


def _spec(task: batch.TaskSpec) -> JSON:
    return task.template.get("spec") or {}


def _spec_estimate(manifest: batch.Job) -> dict[str, str]:
    return {ESTIMATE_KEY: manifest.spec.running_estimate} if manifest.spec.running_estimate else {}
