"""Kinds with a pod template: Deployments and their like, batch Jobs and CronJobs, PodTemplates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from volcano.api import field_errors as says
from volcano.api.errors import FieldError
from volcano.api.meta import JSON
from volcano.api.pods.validation import validate_pod_template
from volcano.embedded.apiserver.kinds.field_checks import field_at, selector_errors
from volcano.embedded.apiserver.kinds.strategy import IMMUTABLE, Strategy


class Workloads(Strategy):
    """Deployments, ReplicaSets, StatefulSets, DaemonSets: a selector that stays, and a template that it selects."""

    initial_status = {}

    def validate(self, obj: JSON) -> list[FieldError]:
        spec = obj.get("spec") or {}
        errors = []
        replicas = spec.get("replicas")
        if isinstance(replicas, int) and replicas < 0:
            errors.append(says.invalid("spec.replicas", replicas, "must be greater than or equal to 0"))
        selector = spec.get("selector")
        if not isinstance(selector, dict):
            errors.append(says.required("spec.selector"))
        elif not (selector.get("matchLabels") or selector.get("matchExpressions")):
            what = str(obj.get("kind", "")).lower()
            errors.append(says.invalid("spec.selector", selector, f"empty selector is invalid for {what}"))
        else:
            errors += selector_errors("spec.selector", selector)
        template = spec.get("template")
        if not isinstance(template, dict):
            errors.append(says.required("spec.template"))
        else:
            labels = ((template.get("metadata") or {}).get("labels")) or {}
            wanted = selector.get("matchLabels") or {} if isinstance(selector, dict) else {}
            if any(labels.get(key) != value for key, value in wanted.items()):
                errors.append(
                    says.invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")
                )
            errors += validate_pod_template(template, "spec.template")
        return errors

    def validate_update(self, obj: JSON, old: JSON) -> list[FieldError]:
        selector = (obj.get("spec") or {}).get("selector")
        errors = self.validate(obj)
        if (old.get("spec") or {}).get("selector") != selector:
            errors.append(says.invalid("spec.selector", selector, IMMUTABLE))
        return errors


class ReplicaSets(Workloads):
    selectable_fields: Mapping[str, str] = {"status.replicas": "0"}


class Templated(Strategy):
    """A kind of which only its pod template is checked; `template_path` leads to it."""

    template_path: ClassVar[tuple[str, ...]] = ("spec", "template")

    def validate(self, obj: JSON) -> Sequence[FieldError]:
        template, path = field_at(obj, self.template_path), ".".join(self.template_path)
        return [says.required(path)] if template is None else validate_pod_template(template, path)


class PodTemplates(Templated):
    has_generation = False
    template_path = ("template",)


class ReplicationControllers(Templated):
    selectable_fields: Mapping[str, str] = {"status.replicas": "0"}
    initial_status = {}


class CronJobs(Templated):
    template_path = ("spec", "jobTemplate", "spec", "template")
    initial_status = {}


class BatchJobs(Templated):
    """A Job selects its pods by its own uid, unless it sets manualSelector."""

    selectable_fields: Mapping[str, str] = {"status.successful": "0"}
    initial_status = {}

    def prepare_create(self, obj: JSON) -> None:
        super().prepare_create(obj)
        spec = obj.get("spec")
        if not isinstance(spec, dict) or spec.get("manualSelector") or not isinstance(spec.get("template"), dict):
            return
        uid, name = obj["metadata"]["uid"], obj["metadata"].get("name", "")
        labels = {
            "batch.kubernetes.io/controller-uid": uid, "batch.kubernetes.io/job-name": name, "controller-uid": uid,
            "job-name": name,
        }  # fmt: skip
        metadata = spec["template"].get("metadata") or {}
        if isinstance(metadata, dict):
            spec["template"]["metadata"] = {**metadata, "labels": {**(metadata.get("labels") or {}), **labels}}
        spec.setdefault("selector", {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}})
