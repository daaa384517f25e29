"""How an eviction is written on the evicted pod, and read again: by whom, why and for whom.

The scheduler writes the message into the pod's Ready condition; Kubernetes' other evictors write a DisruptionTarget
condition or a reason.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from volcano.api.core import Pod
from volcano.api.meta import Condition

SCHEDULER_REASON: Final = "Evict"
EVICTED: Final = "Evicted"
DISRUPTION: Final = "DisruptionTarget"
MAX_MESSAGE_CHARACTERS: Final = 1024
_MESSAGE: Final = re.compile(
    r"Pod is evicted, because of (?P<why>.*?)(?:, to make room for (?P<preemptor>[^\s,]+))?", re.DOTALL
)
EVICTORS: Final = {
    "PreemptionByScheduler": "scheduler",
    "PreemptionByKubeScheduler": "scheduler",
    "DeletionByTaintManager": "taint",
    "EvictionByEvictionAPI": "user",
    "DeletionByPodGC": "cluster",
    "TerminationByKubelet": "node",
}
"""Who evicts, by the reason of the DisruptionTarget condition."""


class ReadEviction(msgspec.Struct, frozen=True):
    """What a pod says about its eviction; `preemptor` is the pod or job that got the room."""

    by: str
    reason: str
    message: str
    preemptor: str = ""
    condition: Condition | None = None


def eviction_message(reason: str, preemptor: str = "") -> str:
    """What the scheduler writes on the pod."""
    return f"Pod is evicted, because of {reason}" + (f", to make room for {preemptor}" if preemptor else "")


def eviction_of(pod: Pod) -> ReadEviction | None:
    """None for a pod that was not evicted."""
    conditions = {each.type: each for each in pod.status.conditions}
    ready, target = conditions.get("Ready"), conditions.get(DISRUPTION)
    if ready is not None and ready.reason == SCHEDULER_REASON and ready.status == "False":
        match = _MESSAGE.fullmatch(ready.message)
        why, preemptor = (match["why"], match["preemptor"] or "") if match else (ready.message, "")
        return ReadEviction("scheduler", why, ready.message[:MAX_MESSAGE_CHARACTERS], preemptor, ready)
    if target is not None and target.status == "True":
        by = EVICTORS.get(target.reason, "other")
        return ReadEviction(by, target.reason, target.message[:MAX_MESSAGE_CHARACTERS], condition=target)
    if pod.status.reason == EVICTED:
        return ReadEviction("node", EVICTED, pod.status.message[:MAX_MESSAGE_CHARACTERS])
    return None
