"""A cycle's exact input as a scenario file, so that any decision can be made again; on request without names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from volcano.api.meta import JSON, Resource
from volcano.api.scheduling import GROUP_NAME_ANNOTATION
from volcano.scheduler.core.assemble import BY_KEY, BY_NAME
from volcano.scheduler.core.snapshot import Snapshot, drop_pod, put_task
from volcano.scheduler.model import Status, Task
from volcano.scheduler.model.queue import UNCHARGED

NOT_NAMES: Final = ("name", "group", "schedulerConf", "now", "seed")


def scenario_from(
    snapshot: Snapshot, *, configuration: str, seed: int, hypernodes: Iterable[Resource] = (), name: str = "recorded"
) -> JSON:
    """The snapshot as it is now, before any cycle, in the format of recorded scenarios."""
    around = snapshot.cluster
    objects: dict[str, list[JSON]] = {
        "nodes": [_plain(node.object) for node in snapshot.table.nodes if node.object is not None],
        "queues": [_plain(queue.object) for queue in snapshot.queues.values() if queue.object is not None],
        "podGroups": [_plain(job.group) for job in snapshot.jobs.values() if job.group is not None],
        "pods": [_pod(task) for task in snapshot.tasks.values()],
        "hyperNodes": [_plain(hypernode) for hypernode in hypernodes],
        "numatopologies": [
            {"metadata": {"name": node.name}, "spec": msgspec.to_builtins(node.numa)}
            for node in snapshot.table.nodes
            if node.numa is not None
        ],
    }
    for plural, (attribute, _) in (*BY_KEY.items(), *BY_NAME.items()):
        objects[plural] = [_plain(item) for item in getattr(around, attribute).values()]
    return {
        "name": name,
        "group": "recorded",
        "schedulerConf": configuration,
        "now": snapshot.now.isoformat(),
        "seed": seed,
        "objects": {plural: items for plural, items in objects.items() if items},
        "extra": _extra(snapshot),
        "state": _state(snapshot),
        "expect": {},
    }


def _plain(resource: Any) -> JSON:
    found: JSON = msgspec.to_builtins(resource)
    return found


def _pod(task: Task) -> JSON:
    body = _plain(task.pod)
    group = task.job_id.partition("/")[2]
    if group and task.pod.annotations.get(GROUP_NAME_ANNOTATION) != group:
        metadata = body.setdefault("metadata", {})
        metadata["annotations"] = {**metadata.get("annotations", {}), GROUP_NAME_ANNOTATION: group}
    return body


def _extra(snapshot: Snapshot) -> JSON:
    around, extra = snapshot.cluster, {}
    if around.shard.mode != "none":
        extra = {
            "shardingMode": around.shard.mode,
            "shardName": around.shard.name,
            "nodesInShard": sorted(around.shard.nodes),
        }
    return {**extra, "ignoreProvisioners": sorted(around.ignored_provisioners)}


def _state(snapshot: Snapshot) -> JSON:
    """What one cycle hands to the next, beyond the objects."""
    tasks = snapshot.tasks.values()
    usage = {
        node.name: {
            "cpu": node.usage.cpu,
            "memory": node.usage.memory,
            "measured": node.usage.measured.isoformat(),
        }
        for node in snapshot.table.nodes
        if node.usage.measured is not None
    }
    state = {
        "assumed": {task.uid: task.node for task in tasks if task.status == Status.BINDING},
        "told": {t.uid: t.bind_annotations for t in tasks if t.status == Status.BINDING and t.bind_annotations},
        "evicting": [t.uid for t in tasks if t.status == Status.RELEASING and not t.pod.is_deleting],
        "domains": {
            **{job.id: job.allocated_domain for job in snapshot.jobs.values() if job.allocated_domain},
            **{
                sub.id: sub.allocated_domain
                for job in snapshot.jobs.values()
                for sub in job.sub_jobs.values()
                if sub.allocated_domain
            },
        },
        "usage": usage,
        "plugins": {name: kept for name, kept in snapshot.memory.items() if kept},
    }
    return {name: value for name, value in state.items() if value}


def restore_state(snapshot: Snapshot, state: Mapping[str, Any]) -> None:
    """The inverse: binds and evictions that were on their way, hypernodes jobs were placed in, what plugins keep."""
    assumed: Mapping[str, str] = state.get("assumed") or {}
    for uid, node in assumed.items():
        _move(snapshot, uid, Status.BINDING, node)
    for uid, told in (state.get("told") or {}).items():
        if uid in snapshot.tasks:
            snapshot.tasks[uid].bind_annotations = dict(told)
    for uid in state.get("evicting") or ():
        task = snapshot.tasks.get(uid)
        if task is not None:
            _move(snapshot, uid, Status.RELEASING, task.node)
    for name, kept in (state.get("plugins") or {}).items():
        snapshot.memory[name] = dict(kept)
    domains: Mapping[str, str] = state.get("domains") or {}
    for job in snapshot.jobs.values() if domains else ():
        job.allocated_domain = domains.get(job.id, "")
        for sub in job.sub_jobs.values():
            sub.allocated_domain = domains.get(sub.id, "")


def _move(snapshot: Snapshot, uid: str, status: Status, node: str) -> None:
    task = snapshot.tasks.get(uid)
    if task is not None:
        drop_pod(snapshot, uid)
        task.status, task.node = status, node
        put_task(snapshot, task)


# -- without names ----------------------------------------------------------------------------------------------
def redacted(scenario: JSON) -> JSON:
    """The same scenario with names and label values replaced, everywhere alike and in the same order."""
    words = _words(scenario)
    written = _Rewriter(words)
    kept: JSON = {key: scenario[key] for key in NOT_NAMES if key in scenario}
    return {**kept, **{key: written.of(value) for key, value in scenario.items() if key not in kept}}


def _words(scenario: JSON) -> dict[str, str]:
    names: set[str] = set()
    values: set[str] = set()
    for items in scenario["objects"].values():
        for item in items:
            metadata = item.get("metadata", {})
            names |= {metadata.get("name", ""), metadata.get("namespace", "")}
            values |= set((metadata.get("labels") or {}).values())
    words = {value: f"v{number:06}" for number, value in enumerate(sorted(values)) if value and not _is_number(value)}
    words |= {name: _token(name, number) for number, name in enumerate(sorted(names)) if name not in _KEPT and name}
    return words


_KEPT: Final = frozenset({"default", "root", UNCHARGED, "kube-system", "volcano-system", "true", "false", "*"})


def _token(name: str, number: int) -> str:
    """A pod's index at the end of its name orders it, and stays."""
    pieces = name.split("-")
    return f"x{number:06}-t-{pieces[-1]}" if len(pieces) >= 3 and pieces[-1].isdigit() else f"x{number:06}"


def _is_number(text: str) -> bool:
    return text.lstrip("+-").isdigit() or text in _KEPT


class _Rewriter:
    def __init__(self, words: Mapping[str, str]) -> None:
        self._words = words

    def of(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {self._text(key): self._entry(key, item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.of(item) for item in value]
        return self._text(value) if isinstance(value, str) else value

    def _entry(self, key: str, item: Any) -> Any:
        if key == "image" and isinstance(item, str):
            return "image"
        if key in ("message", "description") and isinstance(item, str):
            return ""
        return self.of(item)

    def _text(self, text: str) -> str:
        if text in self._words:
            return self._words[text]
        if text.count("/") == 1:
            return "/".join(self._words.get(part, part) for part in text.split("/"))
        return text
