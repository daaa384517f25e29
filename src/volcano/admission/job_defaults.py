"""/jobs/mutate: the defaults of a new Job."""

from __future__ import annotations

from typing import Any, Final

from volcano.admission.extended_limits import with_limits
from volcano.admission.review import ALLOWED, DEFAULT_QUEUE, Reader, ReviewAnswer, Settings, change, read, section
from volcano.admission.submitters import submitter_changes
from volcano.api.batch import Job
from volcano.api.jobs.plugins import added_plugins
from volcano.api.meta import JSON
from volcano.machinery.admission import Attributes

DEFAULT_MAX_RETRY: Final = 3
DEFAULT_SCHEDULER: Final = "volcano"


def mutate_job(attributes: Attributes, _reader: Reader, settings: Settings) -> ReviewAnswer:
    """Changes in a fixed order, computed from the object as it came."""
    job = read(Job, attributes.object)
    if isinstance(job, ReviewAnswer):
        return job
    spec = section(attributes.object, "spec")
    changes = [] if spec or _has_spec(attributes.object) else [change("spec", value={})]
    if not spec.get("queue"):
        changes.append(change("spec", "queue", value=DEFAULT_QUEUE))
    if not spec.get("schedulerName"):
        scheduler = next(iter(settings.scheduler_names), DEFAULT_SCHEDULER)
        changes.append(change("spec", "schedulerName", value=scheduler))
    if not spec.get("maxRetry"):
        changes.append(change("spec", "maxRetry", value=DEFAULT_MAX_RETRY))
    given = [task for task in spec.get("tasks") or () if isinstance(task, dict)]
    completed = [defaulted_task(task, index) for index, task in enumerate(given)]
    tasks, warnings = with_limits(completed, "spec.tasks")
    if tasks != given:
        changes.append(change("spec", "tasks", value=tasks, operation="replace"))
    if not spec.get("minAvailable"):
        minimum = sum(_count(task.get("minAvailable")) for task in tasks)
        changes.append(change("spec", "minAvailable", value=minimum))
    plugins = spec.get("plugins")
    if isinstance(plugins, dict):
        complete = plugins | {name: [] for name in added_plugins(plugins)}
        changes.append(change("spec", "plugins", value=complete, operation="replace"))
    changes += submitter_changes(attributes, settings)
    return ReviewAnswer(changes=tuple(changes), warnings=warnings) if changes else ALLOWED


def defaulted_task(task: JSON, index: int) -> JSON:
    changed = dict(task)
    if not task.get("name"):
        changed["name"] = f"default{index}"
    pod = section(task, "template", "spec")
    if pod.get("hostNetwork") is True and not pod.get("dnsPolicy"):
        changed["template"] = task["template"] | {"spec": pod | {"dnsPolicy": "ClusterFirstWithHostNet"}}
    if task.get("minAvailable") is None:
        changed["minAvailable"] = _needed(task)
    if not task.get("maxRetry"):
        changed["maxRetry"] = DEFAULT_MAX_RETRY
    return changed


def _needed(task: JSON) -> int:
    """All pods of a task, or those of its smallest number of whole partitions."""
    partitions = section(task, "partitionPolicy")
    minimum = _count(partitions.get("minPartitions"))
    return minimum * _count(partitions.get("partitionSize")) if minimum > 0 else _count(task.get("replicas"))


def _count(value: Any) -> int:
    """A number even where a client sent it as text: decoding has accepted it."""
    try:
        return int(value or 0)
    except (TypeError, ValueError, OverflowError):
        return 0


def _has_spec(value: JSON | None) -> bool:
    return isinstance(value, dict) and isinstance(value.get("spec"), dict)
