"""The row of a pod in `kubectl get pods`. How a pod is summed up is api.pods.state's."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from volcano.api.ages import age
from volcano.api.core import FINISHED_POD_PHASES
from volcano.api.meta import JSON
from volcano.api.pods.state import summarize
from volcano.embedded.apiserver.schemas.reading import condition, mapping, moment, objects, text
from volcano.embedded.apiserver.schemas.tables.cell_texts import NONE


def pod_cells(pod: JSON, now: datetime) -> list[Any]:
    """One row, in the order of the columns."""
    status = mapping(pod, "status")
    summary = summarize(pod)
    return [
        text(pod, "metadata", "name"),
        summary.ready_text,
        summary.state,
        summary.restarts.text(now),
        age(moment(pod, "metadata", "creationTimestamp"), now),
        next((text(ip, "ip") for ip in objects(status, "podIPs")), "") or NONE,
        text(pod, "spec", "nodeName") or NONE,
        text(status, "nominatedNodeName") or NONE,
        _readiness_gates(pod),
    ]


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
    if phase not in FINISHED_POD_PHASES:
        return []
    message = "The pod has completed successfully." if phase == "Succeeded" else "The pod failed."
    return [{"type": "Completed", "status": "True", "reason": phase, "message": message}]
