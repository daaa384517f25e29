"""The rows of workloads in `kubectl get`: deployments, sets, jobs, budgets."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from volcano.api.ages import age, human_duration
from volcano.api.meta import JSON
from volcano.embedded.apiserver.schemas.reading import at, condition, mapping, moment, number, objects, text
from volcano.embedded.apiserver.schemas.tables.cell_texts import (
    NONE,
    UNKNOWN,
    UNSET,
    age_of,
    containers_of,
    labels_text,
    name_of,
    or_none,
    selector_text,
)


def deployment(obj: JSON, now: datetime) -> list[Any]:
    selector = selector_text(at(obj, "spec", "selector"))
    return [
        name_of(obj),
        f"{number(obj, 'status', 'readyReplicas')}/{number(obj, 'spec', 'replicas')}",
        number(obj, "status", "updatedReplicas"),
        number(obj, "status", "availableReplicas"),
        age_of(obj, now),
        *containers_of(obj, "spec", "template"),
        "" if selector == NONE else selector,
    ]


def stateful_set(obj: JSON, now: datetime) -> list[Any]:
    ready = f"{number(obj, 'status', 'readyReplicas')}/{number(obj, 'spec', 'replicas')}"
    return [name_of(obj), ready, age_of(obj, now), *containers_of(obj, "spec", "template")]


def daemon_set(obj: JSON, now: datetime) -> list[Any]:
    return [
        name_of(obj),
        number(obj, "status", "desiredNumberScheduled"),
        number(obj, "status", "currentNumberScheduled"),
        number(obj, "status", "numberReady"),
        number(obj, "status", "updatedNumberScheduled"),
        number(obj, "status", "numberAvailable"),
        labels_text(mapping(obj, "spec", "template", "spec", "nodeSelector")),
        age_of(obj, now),
        *containers_of(obj, "spec", "template"),
        selector_text(at(obj, "spec", "selector")),
    ]


def revision(obj: JSON, now: datetime) -> list[Any]:
    owner = next((o for o in objects(obj, "metadata", "ownerReferences") if o.get("controller") is True), None)
    shown = NONE
    if owner is not None:
        group = text(owner, "apiVersion").rpartition("/")[0]
        kind = text(owner, "kind").lower()
        shown = f"{kind}.{group}/{text(owner, 'name')}" if group else f"{kind}/{text(owner, 'name')}"
    return [name_of(obj), shown, number(obj, "revision"), age_of(obj, now)]


_JOB_STATES: Final = (
    ("Complete", "Complete"),
    ("Failed", "Failed"),
    ("", "Terminating"),
    ("Suspended", "Suspended"),
    ("FailureTarget", "FailureTarget"),
    ("SuccessCriteriaMet", "SuccessCriteriaMet"),
)


def job(obj: JSON, now: datetime) -> list[Any]:
    succeeded, parallelism = number(obj, "status", "succeeded"), number(obj, "spec", "parallelism")
    wanted = at(obj, "spec", "completions")
    completions = f"{succeeded}/{wanted}" if wanted is not None else f"{succeeded}/1"
    if wanted is None and parallelism > 1:
        completions = f"{succeeded}/1 of {parallelism}"
    started, ended = moment(obj, "status", "startTime"), moment(obj, "status", "completionTime")
    conditions = objects(obj, "status", "conditions")
    deleting = at(obj, "metadata", "deletionTimestamp") is not None
    state = next(
        (s for kind, s in _JOB_STATES if (condition(conditions, kind) == "True" if kind else deleting)), "Running"
    )
    return [
        name_of(obj),
        state,
        completions,
        human_duration((ended or now) - started) if started is not None else "",
        age_of(obj, now),
        *containers_of(obj, "spec", "template"),
        selector_text(at(obj, "spec", "selector")),
    ]


def cron_job(obj: JSON, now: datetime) -> list[Any]:
    last = moment(obj, "status", "lastScheduleTime")
    suspended = at(obj, "spec", "suspend")
    return [
        name_of(obj),
        text(obj, "spec", "schedule"),
        or_none(text(obj, "spec", "timeZone")),
        UNSET if suspended is None else "True" if suspended else "False",
        len(objects(obj, "status", "active")),
        age(last, now) if last is not None else NONE,
        age_of(obj, now),
        *containers_of(obj, "spec", "jobTemplate", "spec", "template"),
        selector_text(at(obj, "spec", "jobTemplate", "spec", "selector")),
    ]


def disruption_budget(obj: JSON, now: datetime) -> list[Any]:
    shown = ["N/A" if (v := at(obj, "spec", f)) is None else str(v) for f in ("minAvailable", "maxUnavailable")]
    return [name_of(obj), *shown, number(obj, "status", "disruptionsAllowed"), age_of(obj, now)]


MAX_METRICS_SHOWN: Final = 2


def autoscaler(obj: JSON, now: datetime) -> list[Any]:
    """Both versions: v1 has one metric, in fields of its own."""
    reference = mapping(obj, "spec", "scaleTargetRef")
    return [
        name_of(obj),
        f"{reference.get('kind')}/{reference.get('name')}",
        _autoscaler_targets(obj),
        str(number(obj, "spec", "minReplicas")) if at(obj, "spec", "minReplicas") is not None else UNSET,
        str(number(obj, "spec", "maxReplicas")),
        number(obj, "status", "currentReplicas"),
        age_of(obj, now),
    ]


def _autoscaler_targets(obj: JSON) -> str:
    utilization = at(obj, "spec", "targetCPUUtilizationPercentage")
    if utilization is not None:
        current = at(obj, "status", "currentCPUUtilizationPercentage")
        return f"cpu: {UNKNOWN if current is None else f'{current}%'}/{utilization}%"
    currents = objects(obj, "status", "currentMetrics")
    shown = []
    for index, metric in enumerate(objects(obj, "spec", "metrics")):
        field = "containerResource" if metric.get("type") == "ContainerResource" else "resource"
        source, target = mapping(metric, field), mapping(metric, field, "target")
        current = mapping(currents[index], field, "current") if index < len(currents) else {}
        wanted, unit = target.get("averageUtilization"), "%"
        value = current.get("averageUtilization")
        if wanted is None:
            wanted, value, unit = target.get("averageValue", "<auto>"), current.get("averageValue"), ""
        shown.append(
            f"{source.get('name', metric.get('type'))}: {UNKNOWN if value is None else f'{value}{unit}'}/{wanted}{unit}"
        )
    if len(shown) > MAX_METRICS_SHOWN:
        shown = [*shown[:MAX_METRICS_SHOWN], f"+ {len(shown) - MAX_METRICS_SHOWN} more..."]
        return f"{', '.join(shown[:-1])} {shown[-1]}"
    return ", ".join(shown) or NONE
