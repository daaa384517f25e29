"""ChangedOwner: the object a user wrote, from which the pods in question are made; how a patch of it changes them.

A change is tried by patching the owner's body and making its PodGroup and pods anew, as its controller would.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from volcano.api.core import Pod
from volcano.api.meta import JSON
from volcano.api.scheduling import GROUP_NAME_ANNOTATION, TASK_SPEC_KEY
from volcano.api.why.answers import PATCH, REPLACE, ChangedObject
from volcano.machinery.patch import PatchError, json_patch
from volcano.scheduler.explain.trials import TriedJob

VOLCANO_JOB: Final = "Job"
TEMPLATED: Final = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "BatchJob")
PATCHABLE_TEMPLATES: Final = ("Deployment", "StatefulSet", "DaemonSet")
"""Kinds whose pod template may be changed; the others must be deleted and created again."""
IN_PLACE: Final = ("/spec/minAvailable", "/spec/priorityClassName")
"""Fields of a Volcano Job that may be changed, besides replicas and minAvailable of its tasks."""

Remake = Callable[[JSON], TriedJob]
Operation = dict[str, Any]


@dataclass(slots=True, frozen=True)
class ChangedOwner:
    """`kind` tells Volcano's Job (Job) from Kubernetes' own (BatchJob). `remake` makes the subject of a body."""

    kind: str
    body: JSON
    remake: Remake

    @property
    def object(self) -> ChangedObject:
        metadata = self.body.get("metadata") or {}
        kind = "Job" if self.kind == "BatchJob" else self.kind
        versions = {
            "Job": "batch.volcano.sh/v1alpha1", "BatchJob": "batch/v1", "Pod": "v1",
            "PodGroup": "scheduling.volcano.sh/v1beta1",
        }  # fmt: skip
        version = self.body.get("apiVersion") or versions.get(self.kind, "apps/v1")
        return ChangedObject(version, kind, metadata.get("name", ""), metadata.get("namespace") or "default")

    @property
    def resource(self) -> str:
        """As kubectl names it."""
        return {"Job": "vcjob", "BatchJob": "job"}.get(self.kind, self.kind.lower())

    def pod_spec_paths(self, role: str | None = None) -> list[str]:
        """Where the pod specs of a role (or of all) are in the body."""
        if self.kind == VOLCANO_JOB:
            tasks = (self.body.get("spec") or {}).get("tasks") or []
            return [
                f"/spec/tasks/{place}/template/spec"
                for place, task in enumerate(tasks)
                if role is None or (task.get("name") or f"default{place}") == role
            ]
        if self.kind == "Pod":
            return ["/spec"]
        return ["/spec/template/spec"] if self.kind in TEMPLATED else []

    def at(self, path: str) -> Any:
        """What the body has at a path; None where it has nothing."""
        value: Any = self.body
        for part in path.split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            if isinstance(value, list):
                value = value[int(name)] if name.isdigit() and int(name) < len(value) else None
            else:
                value = value.get(name) if isinstance(value, dict) else None
        return value

    def action_for(self, operations: Sequence[Operation]) -> str:
        if self.kind == VOLCANO_JOB:
            in_place = all(o["path"] in IN_PLACE or _is_count(o["path"]) for o in operations)
            return PATCH if in_place else REPLACE
        if self.kind in ("Pod", "BatchJob", "ReplicaSet") and any("/spec/" in o["path"] for o in operations):
            counts = ("/spec/replicas", "/spec/suspend", "/spec/parallelism")
            return PATCH if all(o["path"] in counts for o in operations) else REPLACE
        return PATCH

    def patched(self, operations: Sequence[Operation]) -> TriedJob | None:
        """The subject after the patch; None when the patch does not fit the body."""
        try:
            return self.remake(json_patch(self.body, operations))
        except (PatchError, ValueError, KeyError, TypeError):
            return None


def _is_count(path: str) -> bool:
    parts = path.split("/")
    return len(parts) == 5 and parts[2] == "tasks" and parts[4] in ("replicas", "minAvailable")


def escaped(name: str) -> str:
    """A key as a part of a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")


def remake_from_template(subject: TriedJob, read: Callable[[JSON], Pod]) -> Remake:
    """For workloads: every waiting pod gets the spec of the patched template."""

    def remake(body: JSON) -> TriedJob:
        spec = body.get("spec") or {}
        template = spec.get("template") or {}
        pods = tuple(_respecified(pod, read(template)) for pod in subject.pods)
        return replace(subject, pods=pods)

    return remake


def remake_from_pod(subject: TriedJob, read: Callable[[JSON], Pod]) -> Remake:
    """For a pod that stands alone."""

    def remake(body: JSON) -> TriedJob:
        name = (body.get("metadata") or {}).get("name", "")
        changed = read(body)
        return replace(
            subject, pods=tuple(_respecified(pod, changed) if pod.name == name else pod for pod in subject.pods)
        )

    return remake


def remake_from_group(subject: TriedJob, read: Callable[[JSON], Any]) -> Remake:
    """For a PodGroup whose pods are made by others: only its own fields change."""

    def remake(body: JSON) -> TriedJob:
        return replace(subject, group=read(body))

    return remake


def _respecified(pod: Pod, changed: Pod) -> Pod:
    kept = {name: value for name, value in pod.annotations.items() if name in (GROUP_NAME_ANNOTATION, TASK_SPEC_KEY)}
    metadata = msgspec.structs.replace(
        pod.metadata, labels={**pod.labels, **changed.labels}, annotations={**changed.annotations, **kept}
    )
    spec = msgspec.structs.replace(changed.spec, node_name="", scheduler_name=pod.spec.scheduler_name)
    return msgspec.structs.replace(pod, metadata=metadata, spec=spec)
