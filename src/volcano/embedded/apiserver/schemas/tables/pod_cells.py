"""The row of a pod in `kubectl get pods`: how many containers are ready, and the one word for its state."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from volcano.api.ages import age, human_duration
from volcano.api.meta import JSON
from volcano.embedded.apiserver.schemas.reading import at, condition, mapping, moment, number, objects, text
from volcano.embedded.apiserver.schemas.tables.cell_texts import NONE


class Restarts(msgspec.Struct):
    """How often containers were started again, and when the last one was."""

    count: int = 0
    last: datetime | None = None

    def take(self, status: JSON) -> None:
        self.count += number(status, "restartCount")
        finished = moment(status, "lastState", "terminated", "finishedAt")
        if finished is not None and (self.last is None or finished > self.last):
            self.last = finished

    def shown(self, now: datetime) -> str:
        if self.count and self.last is not None:
            return f"{self.count} ({human_duration(now - self.last)} ago)"
        return str(self.count)


class Summary(msgspec.Struct):
    """What a pod's containers say together."""

    reason: str
    restarts: Restarts
    ready: int = 0


def pod_cells(pod: JSON, now: datetime) -> list[Any]:
    status = mapping(pod, "status")
    summary = Summary(_first_reason(status), Restarts())
    sidecars = {text(c, "name") for c in objects(pod, "spec", "initContainers") if c.get("restartPolicy") == "Always"}
    initializing, sidecar_restarts = _look_at_init_containers(pod, summary, sidecars)
    if not initializing or condition(objects(status, "conditions"), "Initialized") == "True":
        summary.restarts = sidecar_restarts
        _look_at_containers(status, summary)
    if at(pod, "metadata", "deletionTimestamp") is not None:
        if text(status, "reason") == "NodeLost":
            summary.reason = "Unknown"
        elif text(status, "phase") not in ("Failed", "Succeeded"):
            summary.reason = "Terminating"
    total = len(objects(pod, "spec", "containers")) + len(sidecars)
    return [
        text(pod, "metadata", "name"),
        f"{summary.ready}/{total}",
        summary.reason,
        summary.restarts.shown(now),
        age(moment(pod, "metadata", "creationTimestamp"), now),
        next((text(ip, "ip") for ip in objects(status, "podIPs")), "") or NONE,
        text(pod, "spec", "nodeName") or NONE,
        text(status, "nominatedNodeName") or NONE,
        _readiness_gates(pod),
    ]


def _first_reason(status: JSON) -> str:
    for item in objects(status, "conditions"):
        if item.get("type") == "PodScheduled" and item.get("reason") == "SchedulingGated":
            return "SchedulingGated"
    return text(status, "reason") or text(status, "phase")


def _look_at_init_containers(pod: JSON, summary: Summary, sidecars: set[str]) -> tuple[bool, Restarts]:
    """Whether initialization still runs or failed, and the restarts of init containers that go on running."""
    ongoing = Restarts()
    for index, container in enumerate(objects(pod, "status", "initContainerStatuses")):
        summary.restarts.take(container)
        is_sidecar = text(container, "name") in sidecars
        if is_sidecar:
            ongoing.take(container)
        terminated = at(container, "state", "terminated")
        if isinstance(terminated, dict) and number(terminated, "exitCode") == 0:
            continue
        if is_sidecar and container.get("started") is True:
            summary.ready += container.get("ready") is True
            continue
        waiting = text(container, "state", "waiting", "reason")
        if isinstance(terminated, dict):
            summary.reason = f"Init:{_ended(terminated)}"
        elif waiting and waiting != "PodInitializing":
            summary.reason = f"Init:{waiting}"
        else:
            summary.reason = f"Init:{index}/{len(objects(pod, 'spec', 'initContainers'))}"
        return True, ongoing
    return False, ongoing


def _look_at_containers(status: JSON, summary: Summary) -> None:
    running, failure = False, ""
    for container in reversed(objects(status, "containerStatuses")):
        summary.restarts.take(container)
        waiting = text(container, "state", "waiting", "reason")
        terminated = at(container, "state", "terminated")
        if waiting:
            summary.reason = waiting
        elif isinstance(terminated, dict):
            summary.reason = _ended(terminated)
            if number(terminated, "exitCode"):
                failure = summary.reason
        elif container.get("ready") is True and isinstance(at(container, "state", "running"), dict):
            running = True
            summary.ready += 1
    if summary.reason == "Completed":
        if running and condition(objects(status, "conditions"), "Ready") == "True":
            summary.reason = "Running"
        elif failure:
            summary.reason = failure
        elif running:
            summary.reason = "NotReady"


def _ended(terminated: JSON) -> str:
    if reason := text(terminated, "reason"):
        return reason
    if signal := number(terminated, "signal"):
        return f"Signal:{signal}"
    return f"ExitCode:{number(terminated, 'exitCode')}"


def _readiness_gates(pod: JSON) -> str:
    gates = objects(pod, "spec", "readinessGates")
    if not gates:
        return NONE
    conditions = objects(pod, "status", "conditions")
    met = sum(condition(conditions, text(gate, "conditionType")) == "True" for gate in gates)
    return f"{met}/{len(gates)}"


def row_conditions(pod: JSON) -> list[JSON]:
    """Rows of finished pods are marked, so that clients may leave them out."""
    phase = text(pod, "status", "phase")
    if phase not in ("Succeeded", "Failed"):
        return []
    message = "The pod has completed successfully." if phase == "Succeeded" else "The pod failed."
    return [{"type": "Completed", "status": "True", "reason": phase, "message": message}]
