"""The pods of a batch/v1 Job: the slot of each, and what is added to the template."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from volcano.api.core import BatchJob, Pod
from volcano.api.meta import JSON
from volcano.embedded.cluster.workloads.batch_job_spec import BatchJobSpec
from volcano.embedded.cluster.workloads.pods import MAX_NAME_PREFIX_CHARACTERS, made_pod, suffix
from volcano.machinery.plan import Create

INDEX: Final = "batch.kubernetes.io/job-completion-index"
SLOT: Final = "batch.volcano.sh/slot"
INDEX_VARIABLE: Final = "JOB_COMPLETION_INDEX"


class LabelledPod(NamedTuple):
    """A pod and the slot it is for."""

    pod: Pod
    slot: int | None

    @property
    def order(self) -> tuple[int, str]:
        """A sort key: pods of later slots are deleted first."""
        return (-(self.slot or 0), self.pod.name)


def slot_of(pod: Pod) -> int | None:
    text = pod.annotations.get(INDEX) or pod.annotations.get(SLOT) or ""
    return int(text) if text.isdecimal() else None


def pod_for(job: BatchJob, spec: BatchJobSpec, slot: int, taken: set[str]) -> Create:
    """The next attempt at a slot, under the first name of that slot that is free."""
    template = spec.template or {}
    labels = {
        "batch.kubernetes.io/controller-uid": job.uid,
        "batch.kubernetes.io/job-name": job.name,
        "controller-uid": job.uid,
        "job-name": job.name,
    }
    prefix = job.name[:MAX_NAME_PREFIX_CHARACTERS]
    if not spec.is_indexed:
        name = _name(f"{prefix}-", job, slot, taken)
        return made_pod(job, template, name, labels=labels, annotations={SLOT: str(slot)})
    name = _name(f"{prefix}-{slot}-", job, slot, taken)
    body = template.get("spec") or {}
    changed: dict[str, Any] = {field: _with_index(body.get(field), slot) for field in ("containers", "initContainers")}
    changed = {field: value for field, value in changed.items() if value}
    changed.setdefault("hostname", body.get("hostname") or f"{prefix}-{slot}")
    return made_pod(
        job, template, name, labels={**labels, INDEX: str(slot)}, annotations={INDEX: str(slot)}, spec=changed
    )


def _name(prefix: str, job: BatchJob, slot: int, taken: set[str]) -> str:
    attempt = 0
    while (name := f"{prefix}{suffix(job.uid, slot, attempt)}") in taken:
        attempt += 1
    return name


def _with_index(containers: list[JSON] | None, slot: int) -> list[JSON]:
    variable = {"name": INDEX_VARIABLE, "value": str(slot)}
    return [
        {**each, "env": [*(e for e in each.get("env") or [] if e.get("name") != INDEX_VARIABLE), variable]}
        for each in containers or []
    ]
