"""What a Volcano installation's controllers are told, and the command's flags as such settings."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, timedelta, tzinfo
from typing import Any, Final, TypeVar

import click
import msgspec

from volcano.api.durations import DurationError, parse_duration
from volcano.api.meta import Key
from volcano.app.component import parse_feature_gates
from volcano.controllers.sharding.settings import DEFAULTS
from volcano.machinery.local_zone import local_zone

F = TypeVar("F", bound=Callable[..., Any])

GATES: Final[Mapping[str, bool]] = {
    "WorkLoadSupport": True,
    "VolcanoJobSupport": True,
    "QueueCommandSync": True,
    "PriorityClass": True,
    "CronVolcanoJobSupport": True,
    "PodDisruptionBudgetsSupport": True,
    "ResourceTopology": True,
    "CSIStorage": False,
    "SchedulingGatesQueueAdmission": False,
}
"""Volcano's feature gates with their defaults, all alpha; some concern the scheduler and admission only."""
ALL_ALPHA: Final = "AllAlpha"
STAGES: Final = (ALL_ALPHA, "AllBeta")

WORKER_FLAGS: Final[Mapping[str, str]] = {
    "job": "worker_threads",
    "queue": "worker_threads_for_queue",
    "podgroup": "worker_threads_for_podgroup",
    "garbage": "worker_threads_for_gc",
    "cronjob": "worker_threads_for_cronjob",
}
"""Which flag says how many objects a controller works on at a time."""


class ControllerSettings(msgspec.Struct, frozen=True):
    """What the controllers are told."""

    scheduler_names: tuple[str, ...] = ("volcano",)
    inherit_owner_annotations: bool = True
    max_requeue: int = 15
    gates: Mapping[str, bool] = msgspec.field(default_factory=lambda: GATES)
    local_zone: tzinfo = UTC
    controller_configmap: Key = Key("volcano-system", "volcano-controller-configmap")
    sharding_configmap: Key = Key("volcano-system", "volcano-sharding-configmap")
    scheduler_configs: tuple[str, ...] = DEFAULTS
    shard_sync_period: timedelta = timedelta(seconds=60)
    follows_nodes: bool = True

    def has(self, gate: str) -> bool:
        return self.gates[gate]


def controller_options(command: F) -> F:
    """The flags that `settings_from` and `workers_from` read."""
    options = [
        click.option("--scheduler-name", "scheduler_names", multiple=True, default=("volcano",), show_default=True,
                     help="Schedulers whose plain pods get PodGroups; may be repeated."),
        click.option("--max-requeue-num", type=int, default=15, show_default=True,
                     help="How often in a row a job's or a queue's request may fail; below 0 there is no limit."),
        click.option("--inherit-owner-annotations", type=bool, default=True, is_flag=False, flag_value=True,
                     show_default=True, help="PodGroups of plain pods take over their owner's annotations."),
        click.option("--worker-threads", type=click.IntRange(1), default=3, show_default=True,
                     help="Jobs worked on at a time."),
        click.option("--worker-threads-for-queue", type=click.IntRange(1), default=5, show_default=True,
                     help="Queues worked on at a time."),
        click.option("--worker-threads-for-podgroup", type=click.IntRange(1), default=5, show_default=True,
                     help="Plain pods worked on at a time."),
        click.option("--worker-threads-for-gc", type=click.IntRange(1), default=1, show_default=True,
                     help="Finished jobs worked on at a time."),
        click.option("--worker-threads-for-cronjob", type=click.IntRange(1), default=3, show_default=True,
                     help="CronJobs worked on at a time."),
        click.option("--scheduler-configs", multiple=True, default=DEFAULTS, show_default=True,
                     help="Sharding: name:type:minUtil:maxUtil:preferWarmup:minNodes:maxNodes of a scheduler."),
        click.option("--shard-sync-period", default="60s", show_default=True, help="Sharding: time between two looks."),
        click.option("--enable-node-event-trigger", type=bool, default=True, is_flag=False, flag_value=True,
                     show_default=True, help="Sharding: look again when nodes change."),
        click.option("--sharding-configmap", default="volcano-sharding-configmap", show_default=True,
                     help="Sharding: the ConfigMap that overrides these flags."),
        click.option("--sharding-configmap-namespace", default="volcano-system", show_default=True,
                     help="Sharding: the namespace of that ConfigMap."),
    ]  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def settings_from(flags: Mapping[str, Any], environment: Mapping[str, str] = os.environ) -> ControllerSettings:
    """From the flags, and from what an installation puts into the environment."""
    namespace = environment.get("KUBE_POD_NAMESPACE") or "volcano-system"
    release = environment.get("HELM_RELEASE_NAME") or "volcano"
    return ControllerSettings(
        scheduler_names=tuple(flags["scheduler_names"]),
        inherit_owner_annotations=flags["inherit_owner_annotations"],
        max_requeue=flags["max_requeue_num"],
        gates=parse_gates(flags["feature_gates"]),
        local_zone=local_zone(environment),
        controller_configmap=Key(namespace, f"{release}-controller-configmap"),
        sharding_configmap=Key(flags["sharding_configmap_namespace"], flags["sharding_configmap"]),
        scheduler_configs=tuple(_split(flags["scheduler_configs"])),
        shard_sync_period=_duration(flags["shard_sync_period"], "--shard-sync-period"),
        follows_nodes=flags["enable_node_event_trigger"],
    )


def workers_from(flags: Mapping[str, Any]) -> dict[str, int]:
    """How many objects each controller that has a flag for it works on at a time."""
    return {controller: flags[flag] for controller, flag in WORKER_FLAGS.items()}


def parse_gates(text: str) -> dict[str, bool]:
    """Every gate, as the flag or its default has it. AllAlpha turns them all, AllBeta none; a gate's own name wins."""
    given = parse_feature_gates(text)
    unknown = [name for name in given if name not in GATES and name not in STAGES]
    if unknown:
        known = ", ".join((*GATES, *STAGES))
        raise click.BadParameter(
            f"unrecognized feature gate: {unknown[0]}; known: {known}", param_hint="--feature-gates"
        )
    return {name: given.get(name, given.get(ALL_ALPHA, default)) for name, default in GATES.items()}


def _split(texts: Iterable[str]) -> Iterable[str]:
    return (item for text in texts for item in text.split(",") if item)


def _duration(text: str, flag: str) -> timedelta:
    try:
        found = parse_duration(text)
    except DurationError as error:
        raise click.BadParameter(str(error), param_hint=flag) from error
    if found <= timedelta(0):
        raise click.BadParameter("must be more than nothing", param_hint=flag)
    return found
