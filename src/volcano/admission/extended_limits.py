"""Limits of extended resources: a container that only requests them gets its request as the limit, with a warning.

Kubernetes refuses such pods, because extended resources cannot be overcommitted; the limit can only be the request.
"""

from __future__ import annotations

from typing import Any, Final

from volcano.admission.review import ALLOWED, Reader, ReviewAnswer, Settings, change, read, section
from volcano.admission.submitters import submitter_changes
from volcano.api.batch import CronJob
from volcano.api.flow import JobTemplate
from volcano.api.meta import JSON
from volcano.api.pods.validation.resources import is_extended
from volcano.machinery.admission import Attributes

CONTAINER_LISTS: Final = ("containers", "initContainers")
MAX_WARNINGS: Final = 16


def mutate_cronjob(attributes: Attributes, _reader: Reader, settings: Settings) -> ReviewAnswer:
    """/cronjobs/mutate: the limits of the Job that it describes, and who submitted it."""
    cronjob = read(CronJob, attributes.object)
    if isinstance(cronjob, ReviewAnswer):
        return cronjob
    limited = _limited(attributes.object, "spec", "jobTemplate", "spec")
    return ReviewAnswer((*limited.changes, *submitter_changes(attributes, settings)), warnings=limited.warnings)


def mutate_jobtemplate(attributes: Attributes, _reader: Reader, _settings: Settings) -> ReviewAnswer:
    """/jobtemplates/mutate: the limits of the Job that it describes."""
    template = read(JobTemplate, attributes.object)
    return template if isinstance(template, ReviewAnswer) else _limited(attributes.object, "spec")


def _limited(obj: JSON | None, *place: str) -> ReviewAnswer:
    given = section(obj, *place).get("tasks")
    if not isinstance(given, list):
        return ALLOWED
    tasks, warnings = with_limits(given, f"{'.'.join(place)}.tasks")
    if tasks == given:
        return ALLOWED
    return ReviewAnswer((change(*place, "tasks", value=tasks, operation="replace"),), warnings=warnings)


def with_limits(tasks: list[Any], path: str) -> tuple[list[Any], tuple[str, ...]]:
    """The tasks with the limits that were missing, and a warning for each; the given ones stay as they are."""
    warnings: list[str] = []
    limited = [_limited_task(task, f"{path}[{index}]", warnings) for index, task in enumerate(tasks)]
    return limited, tuple(warnings[:MAX_WARNINGS])


def _limited_task(task: Any, path: str, warnings: list[str]) -> Any:
    pod = section(task if isinstance(task, dict) else None, "template", "spec")
    changed: JSON = {}
    for kind in CONTAINER_LISTS:
        given = pod.get(kind)
        if isinstance(given, list):
            place = f"{path}.template.spec.{kind}"
            containers = [_limited_container(each, f"{place}[{i}]", warnings) for i, each in enumerate(given)]
            if containers != given:
                changed[kind] = containers
    return {**task, "template": {**task["template"], "spec": {**pod, **changed}}} if changed else task


def _limited_container(container: Any, path: str, warnings: list[str]) -> Any:
    resources = section(container if isinstance(container, dict) else None, "resources")
    requests, limits = section(resources, "requests"), section(resources, "limits")
    missing = {name: amount for name, amount in requests.items() if is_extended(name) and name not in limits}
    if not missing:
        return container
    warnings += [
        f"{path}.resources.limits[{name}]: set to the request of {amount}, since {name} cannot be overcommitted"[:1024]
        for name, amount in missing.items()
    ]
    return {**container, "resources": {**resources, "limits": {**limits, **missing}}}
