"""Kinds with a pod template: Deployments and their like, batch Jobs, PodTemplates; CronJobs are in kinds.cron_jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from volcano.api import field_errors as says
from volcano.api.errors import FieldError
from volcano.api.meta import JSON
from volcano.api.pods.validation import validate_pod_template
from volcano.embedded.apiserver.kinds.field_checks import field_at, selector_errors
from volcano.embedded.apiserver.kinds.strategy import IMMUTABLE, Strategy

COMPLETING_POLICIES: Final = ("OnFailure", "Never")


def _restarts_always(template: JSON, path: str) -> list[FieldError]:
    policy = (template.get("spec") or {}).get("restartPolicy") or "Always"
    return [] if policy == "Always" else [says.not_supported(f"{path}.spec.restartPolicy", policy, ("Always",))]


def _negative_errors(obj: JSON, fields: Sequence[str]) -> list[FieldError]:
    spec = obj.get("spec") or {}
    found = [(name, spec.get(name)) for name in fields]
    return [
        says.invalid(f"spec.{name}", value, "must be greater than or equal to 0")
        for name, value in found
        if isinstance(value, int) and value < 0
    ]


class Workloads(Strategy):
    """Deployments, ReplicaSets, StatefulSets, DaemonSets: a selector that stays, and a template that it selects."""

    initial_status = {}
    not_negative = ("replicas", "minReadySeconds", "progressDeadlineSeconds", "revisionHistoryLimit")

    def validate(self, obj: JSON) -> list[FieldError]:
        spec = obj.get("spec") or {}
        errors = _negative_errors(obj, self.not_negative)
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
            errors += _restarts_always(template, "spec.template")
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
    not_negative: ClassVar[tuple[str, ...]] = ()

    def validate(self, obj: JSON) -> Sequence[FieldError]:
        errors = _negative_errors(obj, self.not_negative)
        template, path = field_at(obj, self.template_path), ".".join(self.template_path)
        if template is None:
            return [*errors, says.required(path)]
        return [*errors, *validate_pod_template(template, path), *self.template_errors(template, path)]

    def template_errors(self, template: JSON, path: str) -> Sequence[FieldError]:
        """What is wrong with the template as this kind's, besides what is wrong with any."""
        return []


class PodTemplates(Templated):
    has_generation = False
    template_path = ("template",)


class ReplicationControllers(Templated):
    not_negative = ("replicas", "minReadySeconds")
    selectable_fields: Mapping[str, str] = {"status.replicas": "0"}
    initial_status = {}

    def template_errors(self, template: JSON, path: str) -> Sequence[FieldError]:
        return _restarts_always(template, path)


class RunsToCompletion(Templated):
    """Jobs and CronJobs: a pod that always restarts never completes."""

    initial_status = {}

    def template_errors(self, template: JSON, path: str) -> Sequence[FieldError]:
        policy, path = (template.get("spec") or {}).get("restartPolicy"), f"{path}.spec.restartPolicy"
        if policy in COMPLETING_POLICIES:
            return []
        if policy in ("", None, "Always"):
            valid = ", ".join(f'"{each}"' for each in COMPLETING_POLICIES)
            return [says.required(path, f"valid values: {valid}")]
        return [says.not_supported(path, policy, COMPLETING_POLICIES)]


class BatchJobs(RunsToCompletion):
    """A Job selects its pods by its own uid, unless it sets manualSelector."""

    selectable_fields: Mapping[str, str] = {"status.successful": "0"}
    not_negative = (
        "parallelism", "completions", "backoffLimit", "backoffLimitPerIndex", "maxFailedIndexes",
        "activeDeadlineSeconds", "ttlSecondsAfterFinished",
    )  # fmt: skip

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
