"""/jobs/validate on UPDATE: only counts, the priority class and generated claim names may change.

Specs are compared by meaning: absent and empty are the same, quantities and durations compare by value.
"""

from __future__ import annotations

from typing import Any, Final

from volcano.admission.job_partitions import partition_problems
from volcano.admission.review import ALLOWED, ReviewAnswer, Settings, deny, section
from volcano.admission.submitters import submitter_problem
from volcano.admission.topologies import both_tiers_message, gives_both_tiers
from volcano.api.batch import MAX_PODS_PER_JOB, Job, TaskSpec
from volcano.api.durations import DurationError, parse_nanoseconds
from volcano.api.meta import JSON
from volcano.api.quantity import QuantityError, parse_quantity
from volcano.machinery.admission import Attributes

MUTABLE: Final = "`minAvailable`, `priorityClassName`, `tasks[*].replicas` and `tasks[*].minAvailable`"
QUANTITY_MAPS: Final = frozenset({"requests", "limits", "overhead", "capacity"})
QUANTITIES: Final = frozenset({"sizeLimit", "divisor"})
DURATIONS: Final = frozenset({"timeout", "runningEstimate"})
USER_KEYS: Final = frozenset({"plugins", "labels", "annotations", "nodeSelector", "matchLabels", "options"})
"""Maps in which the presence of a key matters, whatever its value."""
ZERO_MEANS_SOMETHING: Final = frozenset(
    {
        "ttlSecondsAfterFinished", "minSuccess", "exitCode", "highestTierAllowed", "terminationGracePeriodSeconds",
        "activeDeadlineSeconds", "runAsUser", "runAsGroup", "runAsNonRoot", "fsGroup", "tolerationSeconds",
        "automountServiceAccountToken", "enableServiceLinks", "shareProcessNamespace", "allowPrivilegeEscalation",
        "privileged", "readOnlyRootFilesystem", "optional", "defaultMode", "mode", "hostUsers", "setHostnameAsFQDN",
        "storageClassName", "priority",
    }
)  # fmt: skip
"""Fields that are pointers in the typed API: for them zero and absent are two things."""
MAX_DEPTH: Final = 100


def validate_job_update(job: Job, attributes: Attributes, settings: Settings) -> ReviewAnswer:
    """The first rule that fails."""
    total = 0
    for task in job.spec.tasks:
        if problem := _task_problem(task):
            return deny(problem)
        total += task.replicas
    if job.spec.min_available > total:
        return deny("job 'minAvailable' must not be greater than total replicas")
    if job.spec.min_available < 0:
        return deny("job 'minAvailable' must be >= 0")
    if gives_both_tiers(job.spec.network_topology):
        return deny(both_tiers_message("networkTopology"))
    if problem := submitter_problem(attributes, settings):
        return deny(problem)
    spec, old = section(attributes.object, "spec"), section(attributes.old, "spec")
    if total > MAX_PODS_PER_JOB and total > _replicas(old):  # one that was stored before can still be changed
        return deny(too_many_pods(total))
    if len(spec.get("tasks") or ()) != len(old.get("tasks") or ()):
        return deny("job updates may not add or remove tasks")
    changed = _first_difference(_fixed_part(spec), _fixed_part(old), "spec", 0)
    if changed:
        return deny(f"job updates may not change fields other than {MUTABLE}: {changed} was changed")
    return ALLOWED


def too_many_pods(total: int) -> str:
    return f"job has {total} replicas in all tasks: must be less than or equal to {MAX_PODS_PER_JOB}"


def _replicas(spec: JSON) -> int:
    numbers = [task.get("replicas") for task in spec.get("tasks") or () if isinstance(task, dict)]
    return sum(number for number in numbers if isinstance(number, int))


def _task_problem(task: TaskSpec) -> str:
    if task.replicas < 0:
        return f"'replicas' must be >= 0 in task: {task.name}"
    if task.min_available is not None and task.min_available < 0:
        return f"'minAvailable' must be >= 0 in task: {task.name}"
    if task.min_available is not None and task.min_available > task.replicas:
        return f"'minAvailable' must be <= 'replicas' in task: {task.name}"
    return "; ".join(partition_problems(task))


def _fixed_part(spec: JSON) -> JSON:
    """The spec without what may change."""
    kept = {key: value for key, value in spec.items() if key not in ("minAvailable", "priorityClassName")}
    kept["tasks"] = [
        {key: value for key, value in task.items() if key not in ("replicas", "minAvailable")}
        for task in spec.get("tasks") or ()
        if isinstance(task, dict)
    ]
    kept["volumes"] = [
        {key: value for key, value in volume.items() if key != "volumeClaimName" or not volume.get("volumeClaim")}
        for volume in spec.get("volumes") or ()
        if isinstance(volume, dict)
    ]
    return kept


def _first_difference(new: Any, old: Any, path: str, depth: int) -> str:
    """The path at which two values differ in meaning; empty when they do not."""
    key = path.rpartition(".")[2].partition("[")[0]
    if depth > MAX_DEPTH or new == old:
        return ""
    if _is_nothing(new, key) and _is_nothing(old, key):
        return ""
    if isinstance(new, dict | None) and isinstance(old, dict | None):
        new, old = new or {}, old or {}
        if key in QUANTITY_MAPS:
            return "" if _amounts(new) == _amounts(old) else path
        if key in USER_KEYS and (strange := sorted(map(str, new.keys() ^ old.keys()))):
            return f"{path}.{strange[0]}"
        for name in sorted({*new, *old}, key=str):
            found = _first_difference(new.get(name), old.get(name), f"{path}.{name}", depth + 1)
            if found:
                return found
        return ""
    if isinstance(new, list) and isinstance(old, list):
        if len(new) != len(old):
            return path
        pairs = enumerate(zip(new, old, strict=True))
        return next((d for i, (a, b) in pairs if (d := _first_difference(a, b, f"{path}[{i}]", depth + 1))), "")
    return "" if _same_measure(key, new, old) else path


def _is_nothing(value: Any, key: str) -> bool:
    if value is None or value in ("", [], {}):
        return value != "" or key not in ZERO_MEANS_SOMETHING
    return value in (0, False) and key not in ZERO_MEANS_SOMETHING


def _same_measure(key: str, new: Any, old: Any) -> bool:
    try:
        if key in QUANTITIES:
            return parse_quantity(new) == parse_quantity(old)
        if key in DURATIONS:
            return parse_nanoseconds(new) == parse_nanoseconds(old)
    except (QuantityError, DurationError, TypeError):
        return False
    return False


def _amounts(quantities: JSON) -> JSON:
    found: JSON = {}
    for name, text in quantities.items():
        try:
            found[name] = parse_quantity(text)
        except (QuantityError, TypeError):
            found[name] = text
    return found
