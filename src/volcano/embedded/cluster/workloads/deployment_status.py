"""The status of a Deployment: counts, and the conditions Available and Progressing."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from volcano.api.core import Deployment, ReplicaSet
from volcano.api.meta import JSON
from volcano.api.times import parse_timestamp, timestamp
from volcano.embedded.cluster.workloads.rollout_limits import limits

DEFAULT_PROGRESS_DEADLINE_SECONDS: Final = 600


def deployment_status(
    deployment: Deployment, current: ReplicaSet | None, earlier: list[ReplicaSet], now: datetime
) -> JSON:
    """Counts of zero are left out."""
    everything = [*earlier, *([current] if current is not None else [])]
    wanted = 1 if deployment.spec.replicas is None else deployment.spec.replicas
    counts = {
        "replicas": sum(_count(each, "replicas") for each in everything),
        "updatedReplicas": _count(current, "replicas"),
        "readyReplicas": sum(_count(each, "readyReplicas") for each in everything),
        "availableReplicas": sum(_count(each, "availableReplicas") for each in everything),
    }
    counts["unavailableReplicas"] = max(0, wanted - counts["availableReplicas"])
    status: JSON = {name: count for name, count in counts.items() if count}
    status["observedGeneration"] = deployment.metadata.generation
    status["conditions"] = _conditions(deployment, counts, now)
    return status


def _count(replica_set: ReplicaSet | None, field: str) -> int:
    return int((replica_set.status or {}).get(field, 0)) if replica_set is not None else 0


def _is_complete(deployment: Deployment, counts: dict[str, int]) -> bool:
    wanted = 1 if deployment.spec.replicas is None else deployment.spec.replicas
    return counts["updatedReplicas"] == counts["replicas"] == counts["availableReplicas"] == wanted


def _conditions(deployment: Deployment, counts: dict[str, int], now: datetime) -> list[JSON]:
    have = {each.get("type"): each for each in (deployment.status or {}).get("conditions") or []}
    wanted = 1 if deployment.spec.replicas is None else deployment.spec.replicas
    enough = counts["availableReplicas"] >= wanted - _tolerated(deployment, wanted)
    available = (
        ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
        if enough
        else ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    )
    progressing = _progress(deployment, counts, have.get("Progressing"), now)
    return [
        _condition("Available", available, have.get("Available"), now, moved=False),
        _condition("Progressing", progressing, have.get("Progressing"), now, moved=_has_moved(deployment, counts)),
    ]


def _tolerated(deployment: Deployment, wanted: int) -> int:
    if ((deployment.spec.strategy or {}).get("type") or "RollingUpdate") == "Recreate":
        return 0
    return limits(deployment, wanted)[1]


def _has_moved(deployment: Deployment, counts: dict[str, int]) -> bool:
    """Whether the rollout progressed: more of the present template, fewer of the others, or more ready ones."""
    have = deployment.status or {}
    return (
        counts["updatedReplicas"] > have.get("updatedReplicas", 0)
        or counts["availableReplicas"] > have.get("availableReplicas", 0)
        or counts["readyReplicas"] > have.get("readyReplicas", 0)
        or counts["replicas"] - counts["updatedReplicas"] < have.get("replicas", 0) - have.get("updatedReplicas", 0)
        or have.get("observedGeneration") != deployment.metadata.generation
    )


def _progress(deployment: Deployment, counts: dict[str, int], have: JSON | None, now: datetime) -> tuple[str, str, str]:
    name = deployment.name
    if deployment.spec.paused:
        return ("Unknown", "DeploymentPaused", "Deployment is paused")
    if _is_complete(deployment, counts):
        return ("True", "NewReplicaSetAvailable", f'Deployment "{name}" has successfully progressed.')
    if have is not None and not _has_moved(deployment, counts) and _is_late(deployment, have, now):
        return ("False", "ProgressDeadlineExceeded", f'Deployment "{name}" has timed out progressing.')
    return ("True", "ReplicaSetUpdated", f'Deployment "{name}" is progressing.')


def _is_late(deployment: Deployment, progressing: JSON, now: datetime) -> bool:
    if progressing.get("reason") == "ProgressDeadlineExceeded":
        return True
    if progressing.get("reason") == "NewReplicaSetAvailable":
        return False
    since = progressing.get("lastUpdateTime")
    return since is not None and parse_timestamp(since) + _progress_deadline(deployment) <= now


def _progress_deadline(deployment: Deployment) -> timedelta:
    seconds = deployment.spec.progress_deadline_seconds
    return timedelta(seconds=DEFAULT_PROGRESS_DEADLINE_SECONDS if seconds is None else seconds)


def _condition(kind: str, said: tuple[str, str, str], have: JSON | None, now: datetime, *, moved: bool) -> JSON:
    """lastTransitionTime changes with the status, lastUpdateTime with the reason and with every progress."""
    status, reason, message = said
    stamp = timestamp(now)
    same = have is not None and (have.get("status"), have.get("reason")) == (status, reason)
    turned = have is None or have.get("status") != status
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastUpdateTime": have["lastUpdateTime"] if have and same and not moved else stamp,
        "lastTransitionTime": stamp if turned or have is None else have["lastTransitionTime"],
    }


def next_deadline(deployment: Deployment, status: JSON, now: datetime) -> timedelta | None:
    """The time until a rollout that is under way must have progressed."""
    progressing = next(each for each in status["conditions"] if each["type"] == "Progressing")
    if progressing["reason"] != "ReplicaSetUpdated":
        return None
    return max(
        parse_timestamp(progressing["lastUpdateTime"]) + _progress_deadline(deployment) - now, timedelta(seconds=1)
    )
