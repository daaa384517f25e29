"""A pod's state in one word, as kubectl finds it: the phase, overridden by whatever says more."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from volcano.api.ages import human_duration
from volcano.api.meta import JSON
from volcano.cli.formats import parse_time


def ready_count(pod: JSON) -> str:
    """Ready containers of all, restartable init containers included."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    sidecars = _sidecars(spec)
    total = len(spec.get("containers") or ()) + len(sidecars)
    ready = sum(1 for each in status.get("containerStatuses") or () if _is_running_and_ready(each))
    ready += sum(
        1
        for each in status.get("initContainerStatuses") or ()
        if each.get("name") in sidecars and each.get("started") and each.get("ready")
    )
    return f"{ready}/{total}"


def restarts(pod: JSON, now: datetime) -> str:
    """How often containers were restarted, and how long ago the last time was."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    inits, mains = status.get("initContainerStatuses") or [], status.get("containerStatuses") or []
    sidecars = _sidecars(spec)
    counted = inits if _init_text(spec, status) else [*mains, *(i for i in inits if i.get("name") in sidecars)]
    count = sum(each.get("restartCount", 0) for each in counted)
    ends = [parse_time(((each.get("lastState") or {}).get("terminated") or {}).get("finishedAt")) for each in counted]
    known = [end for end in ends if end is not None]
    return f"{count} ({human_duration(now - max(known))} ago)" if count and known else str(count)


def status_text(pod: JSON) -> str:
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    text = status.get("reason") or status.get("phase") or ""
    if any(
        c.get("type") == "PodScheduled" and c.get("reason") == "SchedulingGated" for c in status.get("conditions") or ()
    ):
        text = "SchedulingGated"
    initial = _init_text(spec, status)
    text = initial or _container_text(status, text)
    if pod["metadata"].get("deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            return "Unknown"
        if status.get("phase") not in ("Succeeded", "Failed"):
            return "Terminating"
    return text


def _init_text(spec: JSON, status: JSON) -> str:
    """How far the init containers are, or nothing when they are done."""
    if any(c.get("type") == "Initialized" and c.get("status") == "True" for c in status.get("conditions") or ()):
        return ""
    sidecars, total = _sidecars(spec), len(spec.get("initContainers") or ())
    for index, each in enumerate(status.get("initContainerStatuses") or ()):
        state = each.get("state") or {}
        ended, waits = state.get("terminated"), state.get("waiting")
        if ended is not None and ended.get("exitCode", 0) == 0:
            continue
        if each.get("name") in sidecars and each.get("started"):
            continue
        if ended is not None:
            return f"Init:{_ended_text(ended)}"
        if waits is not None and waits.get("reason") not in (None, "", "PodInitializing"):
            return f"Init:{waits['reason']}"
        return f"Init:{index}/{total}"
    return ""


def _container_text(status: JSON, text: str) -> str:
    is_running = False
    for each in reversed(status.get("containerStatuses") or []):
        state = each.get("state") or {}
        if (state.get("waiting") or {}).get("reason"):
            text = state["waiting"]["reason"]
        elif state.get("terminated") is not None:
            text = _ended_text(state["terminated"])
        elif _is_running_and_ready(each):
            is_running = True
    if text == "Completed" and is_running:
        ready = any(c.get("type") == "Ready" and c.get("status") == "True" for c in status.get("conditions") or ())
        return "Running" if ready else "NotReady"
    return text


def _ended_text(ended: JSON) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"


def _is_running_and_ready(each: JSON) -> bool:
    return bool(each.get("ready")) and (each.get("state") or {}).get("running") is not None


def _sidecars(spec: JSON) -> set[Any]:
    return {c.get("name") for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always"}
