"""Changes that need no trial, because what is asked for is exactly what is missing: resume, scale, a name, a limit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from volcano.api.nearest_words import nearest_word
from volcano.api.quantity import QuantityError, parse_quantity
from volcano.api.why.answers import COMMAND, ChangedObject, ProposedChange
from volcano.api.why.reasons import Finding
from volcano.scheduler.explain.command_lines import patch_command
from volcano.scheduler.explain.owners import ChangedOwner, Operation
from volcano.scheduler.explain.questions_asked import WhyQuestion

MAX_DEPTH: Final = 24
VERSIONS: Final = {
    "Deployment": "apps/v1", "ReplicaSet": "apps/v1", "StatefulSet": "apps/v1", "BatchJob": "batch/v1",
    "CronJob": "batch.volcano.sh/v1alpha1", "BatchCronJob": "batch/v1",
}  # fmt: skip
RESOURCES: Final = {"BatchJob": "job", "CronJob": "cronjobs.batch.volcano.sh", "BatchCronJob": "cronjobs.batch"}


def owner_changes(found: Finding, question: WhyQuestion, owner: ChangedOwner | None) -> list[ProposedChange]:
    match found.reason:
        case "Suspended" if question.kind == "Job":
            return [_resume(question)]
        case "Suspended" | "CronSuspended":
            return [_set(question, "resume it", "/spec/suspend", False)]
        case "Paused":
            return [_set(question, "resume it", "/spec/paused", False)]
        case "NoReplicas":
            return [_set(question, "ask for 1 replica", "/spec/replicas", 1)]
        case "SecretNotFound" | "ConfigMapNotFound" if owner is not None:
            kind = "Secret" if found.reason == "SecretNotFound" else "ConfigMap"
            return list(_right_name(found, question, owner, kind))
        case "ServiceAccountNotFound" if owner is not None:
            return list(_right_account(found, question, owner))
        case "OutOfMemory" if owner is not None:
            return list(_more_memory(found, owner))
    return []


def _resume(question: WhyQuestion) -> ProposedChange:
    target = ChangedObject("batch.volcano.sh/v1alpha1", "Job", question.name, question.namespace)
    command = f"vcctl job resume {question.name} -n {question.namespace}"
    return ProposedChange("resume it", command, target, COMMAND, body={"action": "ResumeJob"})


def _set(question: WhyQuestion, sentence: str, path: str, value: Any) -> ProposedChange:
    kind = {"BatchJob": "Job", "BatchCronJob": "CronJob"}.get(question.kind, question.kind)
    target = ChangedObject(VERSIONS.get(question.kind, "v1"), kind, question.name, question.namespace)
    operations: list[Operation] = [{"op": "add", "path": path, "value": value}]
    resource = RESOURCES.get(question.kind, question.kind.lower())
    return ProposedChange(sentence, patch_command(target, resource, operations, "patch"), target, patch=operations)


def _right_name(found: Finding, question: WhyQuestion, owner: ChangedOwner, kind: str) -> Iterator[ProposedChange]:
    """The nearest name that exists, wherever the pods name the one that does not."""
    wrong = str(found.facts["name"])
    near = nearest_word(wrong, question.known.get(kind, ()))
    if near:
        yield from _replaced(owner, wrong, near, f"use {kind} {near}")


def _right_account(found: Finding, question: WhyQuestion, owner: ChangedOwner) -> Iterator[ProposedChange]:
    wrong = str(found.facts["name"])
    near = nearest_word(wrong, question.known.get("ServiceAccount", ()))
    if near:
        yield from _replaced(owner, wrong, near, f"use ServiceAccount {near}")


def _replaced(owner: ChangedOwner, wrong: str, right: str, sentence: str) -> Iterator[ProposedChange]:
    operations: list[Operation] = [
        {"op": "replace", "path": path, "value": right}
        for base in owner.pod_spec_paths()
        for path in _places(owner.at(base), wrong, base, 0)
    ]
    if operations:
        yield _proposed(owner, sentence, operations)


NAMING_KEYS: Final = frozenset({"name", "secretName", "serviceAccountName", "serviceAccount"})


def _places(value: Any, wrong: str, path: str, depth: int) -> Iterator[str]:
    """Where a reference has this name."""
    if depth > MAX_DEPTH:
        return
    if isinstance(value, dict):
        for key, inner in value.items():
            if inner == wrong and key in NAMING_KEYS:
                yield f"{path}/{key}"
            else:
                yield from _places(inner, wrong, f"{path}/{key.replace('~', '~0').replace('/', '~1')}", depth + 1)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _places(inner, wrong, f"{path}/{number}", depth + 1)


def _more_memory(found: Finding, owner: ChangedOwner) -> Iterator[ProposedChange]:
    """Twice the limit that was not enough."""
    name = found.facts.get("container")
    for base in owner.pod_spec_paths():
        for place, container in enumerate((owner.at(base) or {}).get("containers") or ()):
            limit = ((container.get("resources") or {}).get("limits") or {}).get("memory")
            if container.get("name") != name or limit is None:
                continue
            try:
                doubled = str(parse_quantity(limit) * 2)
            except QuantityError:
                continue
            path = f"{base}/containers/{place}/resources/limits/memory"
            operations: list[Operation] = [{"op": "replace", "path": path, "value": doubled}]
            yield _proposed(owner, f"raise the memory limit of {name} from {limit} to {doubled}", operations)


def _proposed(owner: ChangedOwner, sentence: str, operations: list[Operation]) -> ProposedChange:
    action = owner.action_for(operations)
    command = patch_command(owner.object, owner.resource, operations, action)
    return ProposedChange(sentence, command, owner.object, action, operations)
