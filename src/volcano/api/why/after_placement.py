"""What keeps a placed pod from running, or made it fail: read from the status and the events that its node wrote."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from volcano.api.core import ContainerStateTerminated, ContainerStatus, Event, Pod
from volcano.api.nearest_words import did_you_mean
from volcano.api.pods.state import is_on_lost_node
from volcano.api.quantity import QuantityError, format_quantity
from volcano.api.why.reasons import Finding, finding
from volcano.api.why.tiers import Tier

MISSING_OBJECT: Final = re.compile(
    r'(?i)\b(?P<kind>secrets?|configmaps?) (?:"?[\w.-]+"?/)?"(?P<name>[\w.-]+)" not found'
)
MISSING_KEY: Final = re.compile(
    r"couldn't find key (?P<key>\S+) in (?P<kind>Secret|ConfigMap) (?:[\w.-]+/)?(?P<name>[\w.-]+)"
    r'|(?P<kind2>secret|configmap) "(?P<name2>[\w.-]+)" has no key "?(?P<key2>[\w.-]+)"?',
    re.IGNORECASE,
)
CONFIGURATION: Final = ("CreateContainerConfigError", "CreateContainerError", "CreatePodSandboxError")
PULLING: Final = ("ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "RegistryUnavailable", "ImageInspectError")
NOT_STARTED: Final = ("StartError", "ContainerCannotRun", "RunContainerError")
WAITING_ON_NODE: Final = ("", "ContainerCreating", "PodInitializing")
NOT_FOUND_CODE: Final = 127
NOT_EXECUTABLE_CODE: Final = 126
RANKS: Final = {Tier.YOU: 0, Tier.FAILING: 1, Tier.ADMINISTRATOR: 2, Tier.EVENT: 3, Tier.STARTING: 4}
RUNNING_MESSAGE_LINES: Final = 1


def placed_cause(
    pods: Iterable[Pod],
    events: Sequence[Event] = (),
    last_lines: Mapping[str, str] | None = None,
    known: Mapping[str, Iterable[str]] | None = None,
) -> Finding | None:
    """What is wrong with the pods that have a node; None when they run. What needs a change comes first.

    `last_lines`: the last line of the log by pod; `known`: names of existing Secrets and ConfigMaps by kind.
    """
    found = []
    pods = list(pods)
    for pod in pods:
        cause = (
            _pod_cause(pod, events, last_lines or {}, known or {}) if pod.spec.node_name or pod.is_finished else None
        )
        if cause is not None:
            found.append(cause)
    if not found:
        return None
    first = min(found, key=lambda cause: RANKS.get(cause.tier, 9))
    return _counted(first, found)


def _counted(first: Finding, found: Sequence[Finding]) -> Finding:
    """An exit code that several pods have is counted over all of them."""
    if first.reason != "ExitCode" or "count" not in first.facts:
        return first
    same = [f for f in found if f.reason == "ExitCode" and f.facts["code"] == first.facts["code"]]
    total = sum(int(each.facts["count"]) for each in same)
    return Finding(first.reason, {**first.facts, "count": total, "times": _times(total)})


def _pod_cause(
    pod: Pod, events: Sequence[Event], lines: Mapping[str, str], known: Mapping[str, Iterable[str]]
) -> Finding | None:
    where: dict[str, str | int] = {"pod": pod.name, "node": pod.spec.node_name}
    mine = [event for event in events if event.involved_object.name == pod.name]
    if pod.status.phase == "Succeeded":
        return None
    if pod.status.reason == "Evicted":
        return finding("PodEvicted", message=pod.status.message, **where)
    if pod.status.reason == "DeadlineExceeded":
        return finding("DeadlineExceeded", **where)
    if is_on_lost_node(pod.status.reason) and not pod.is_finished:
        return finding("NodeSilent", **where)
    inits = {status.name for status in pod.status.init_container_statuses}
    for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        cause = _container_cause(pod, status, where, lines, known, is_init=status.name in inits)
        if cause is not None:
            return cause
    if pod.status.phase == "Failed":
        return finding("PodFailed", message=pod.status.message or pod.status.reason or "no container says why", **where)
    if pod.is_deleting:
        return finding("PodEnding", **where)
    return _of_events(pod, mine, where, known) or _not_running(pod, where)


# -- containers -------------------------------------------------------------------------------------------------------
def _container_cause(
    pod: Pod,
    status: ContainerStatus,
    where: Mapping[str, str | int],
    lines: Mapping[str, str],
    known: Mapping[str, Iterable[str]],
    *,
    is_init: bool,
) -> Finding | None:
    waiting, ended = status.state.waiting, status.state.terminated or status.last_state.terminated
    facts: dict[str, str | int] = {**where, "container": status.name}
    if waiting is not None and waiting.reason not in (*WAITING_ON_NODE, "CrashLoopBackOff"):
        cause = _waiting_cause(pod, status, waiting.reason, waiting.message, facts, known)
        if cause is not None:
            return cause
    looping = waiting is not None and waiting.reason == "CrashLoopBackOff"
    if ended is None or (status.state.running is not None and not ended.exit_code):
        return None
    if ended.exit_code == 0 and not looping:
        return None
    if status.state.running is not None and status.ready:
        return None  # it failed before, and runs now
    return _ended_cause(pod, status, ended, facts, lines, is_init=is_init)


def _waiting_cause(
    pod: Pod,
    status: ContainerStatus,
    reason: str,
    message: str,
    facts: Mapping[str, str | int],
    known: Mapping[str, Iterable[str]],
) -> Finding | None:
    image = next((c.image for c in (*pod.spec.init_containers, *pod.spec.containers) if c.name == status.name), "")
    if reason in CONFIGURATION:
        return missing_cause(message, facts, known) or finding(
            "ContainerNotConfigured", **{**facts, "message": message or reason}
        )
    if reason == "InvalidImageName":
        return finding("ImageNameInvalid", **{**facts, "image": image})
    if reason in PULLING:
        if "no command" in message:
            return finding("ImageHasNoCommand", **{**facts, "image": image})
        return finding("ImageNotPulled", **{**facts, "image": image, "message": message or reason})
    if reason in NOT_STARTED:
        return finding("CommandNotFound", **{**facts, "message": message or reason})
    return None


def missing_cause(message: str, facts: Mapping[str, str | int], known: Mapping[str, Iterable[str]]) -> Finding | None:
    """A Secret or ConfigMap, or a key of one, that does not exist."""
    found = MISSING_OBJECT.search(message)
    if found is not None:
        kind = "Secret" if found["kind"].lower().startswith("secret") else "ConfigMap"
        meant = did_you_mean(found["name"], known.get(kind, ()))
        return finding(f"{kind}NotFound", **{**facts, "name": found["name"], "meant": meant})
    key = MISSING_KEY.search(message)
    if key is not None:
        kind = "Secret" if (key["kind"] or key["kind2"]).lower() == "secret" else "ConfigMap"
        name = key["name"] or key["name2"]
        return finding("KeyNotFound", **{**facts, "kind": kind, "name": name, "key": key["key"] or key["key2"]})
    return None


def _ended_cause(
    pod: Pod,
    status: ContainerStatus,
    ended: ContainerStateTerminated,
    facts: Mapping[str, str | int],
    lines: Mapping[str, str],
    *,
    is_init: bool,
) -> Finding:
    count = status.restart_count + (1 if status.state.terminated is not None else 0)
    more: dict[str, str | int] = {**facts, "count": max(count, 1), "times": _times(max(count, 1))}
    if ended.reason == "OOMKilled":
        return finding("OutOfMemory", **{**more, "limit": _memory_limit(pod, status.name)})
    if ended.reason in NOT_STARTED:
        return finding("CommandNotFound", **{**more, "message": ended.message or ended.reason})
    line = lines.get(f"{pod.namespace}/{pod.name}") or lines.get(pod.name) or _last(ended.message)
    more["last_line"] = f"; last line of its log: {line}" if line else ""
    if ended.signal:
        return finding("KilledBySignal", **{**more, "signal": ended.signal})
    if ended.exit_code in (NOT_FOUND_CODE, NOT_EXECUTABLE_CODE) and line and "not found" in line.lower():
        return finding("CommandNotFound", **{**more, "message": line})
    return finding("InitContainerFails" if is_init else "ExitCode", **{**more, "code": ended.exit_code})


def _memory_limit(pod: Pod, container: str) -> str:
    for each in (*pod.spec.init_containers, *pod.spec.containers):
        limit = (each.resources.limits or {}).get("memory") if each.name == container else None
        if limit is not None:
            try:
                return f" of {format_quantity(limit)}"
            except QuantityError:
                return ""
    return ""


def _last(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else ""


def _times(count: int) -> str:
    words = {2: " twice", 3: " three times"}
    return "" if count <= 1 else words.get(count, f" {count} times")


# -- what only events say ---------------------------------------------------------------------------------------------
def _of_events(
    pod: Pod, events: Sequence[Event], where: Mapping[str, str | int], known: Mapping[str, Iterable[str]]
) -> Finding | None:
    if pod.status.phase == "Pending":
        for event in reversed(events):
            if event.reason in ("FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox", "Failed"):
                return missing_cause(event.message, where, known) or finding(
                    "VolumeNotMounted", **{**where, "message": event.message}
                )
    unready = [status for status in pod.status.container_statuses if not status.ready]
    for event in reversed(events) if unready else ():
        if event.reason == "Unhealthy":
            probe, _, text = event.message.partition(" probe failed")
            kind = probe.split()[-1].lower() if probe else "readiness"
            message = text.strip(": ") or event.message
            return finding("ProbeFails", **{**where, "container": unready[0].name, "probe": kind, "message": message})
    return None


def _not_running(pod: Pod, where: Mapping[str, str | int]) -> Finding | None:
    if pod.status.phase in ("", "Pending"):
        return finding("ContainersStarting", **where)
    unready = [s for s in pod.status.container_statuses if not s.ready and s.state.running is not None]
    return finding("NotReadyYet", **{**where, "container": unready[0].name}) if unready else None
