"""Choose the controllers of a Volcano installation, make them, and run them with one Runner."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from volcano.controllers.colocation import ColocationController
from volcano.controllers.cronjob import CronJobController
from volcano.controllers.garbage import GarbageController
from volcano.controllers.hypernode import HyperNodeController
from volcano.controllers.job import JobController
from volcano.controllers.jobflow import JobFlowController, JobTemplateController
from volcano.controllers.podgroup import PodGroupController
from volcano.controllers.queue import QueueController
from volcano.controllers.service.choice import DEFAULT_CONTROLLERS, SHARDING_CONTROLLER, is_enabled
from volcano.controllers.service.job_metrics import ControllerMetrics
from volcano.controllers.service.probing import ask
from volcano.controllers.service.settings import ControllerSettings
from volcano.controllers.sharding import ShardingController
from volcano.controllers.sharding.settings import from_flags
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock
from volcano.machinery.controller import Controller
from volcano.machinery.informer_set import InformerSet
from volcano.machinery.runner import WORKERS_PER_CONTROLLER, Runner

GATED: Final = {"job-controller": "VolcanoJobSupport", "cronjob-controller": "CronVolcanoJobSupport"}
"""Controllers that a feature gate turns off as a whole."""


def make_controllers(
    chosen: Iterable[str] = tuple(DEFAULT_CONTROLLERS.split(",")), *, settings: ControllerSettings | None = None
) -> list[Controller]:
    """The controllers of a Volcano installation that are on."""
    chosen, settings = list(chosen), settings or ControllerSettings()
    gated_off = {name for name, gate in GATED.items() if not settings.has(gate)}
    makers = _makers(settings)
    return [make() for name, make in makers.items() if is_enabled(name, chosen) and name not in gated_off]


def _makers(settings: ControllerSettings) -> dict[str, Callable[[], Controller]]:
    commands = settings.has("QueueCommandSync")
    return {
        "job-controller": lambda: JobController(
            max_requeue=settings.max_requeue,
            commands=commands,
            priority_classes=settings.has("PriorityClass"),
            run_times=settings.run_times,
        ),
        "queue-controller": lambda: QueueController(max_requeue=settings.max_requeue, commands=commands),
        "pg-controller": lambda: PodGroupController(
            scheduler_names=settings.scheduler_names,
            inherit_owner_annotations=settings.inherit_owner_annotations,
            workload_support=settings.has("WorkLoadSupport"),
        ),
        "gc-controller": GarbageController,
        "jobflow-controller": JobFlowController,
        "jobtemplate-controller": JobTemplateController,
        "cronjob-controller": lambda: CronJobController(local_zone=settings.local_zone),
        "hyperNode-controller": lambda: HyperNodeController(config_map=settings.controller_configmap),
        "colocation-config-controller": ColocationController,
        SHARDING_CONTROLLER: lambda: _sharding(settings),
    }


def _sharding(settings: ControllerSettings) -> Controller:
    shares = from_flags(
        settings.scheduler_configs, period=settings.shard_sync_period, follows_nodes=settings.follows_nodes
    )
    return ShardingController(settings=shares, config_map=settings.sharding_configmap)


async def run_controllers(
    client: Client,
    clock: Clock,
    controllers: list[Controller],
    *,
    workers: Mapping[str, int] | None = None,
    metrics: ControllerMetrics | None = None,
    informers: InformerSet | None = None,
) -> None:
    runner = Runner(
        client,
        clock,
        controllers,
        component="vc-controller-manager",
        workers=workers or WORKERS_PER_CONTROLLER,
        probe=ask,
        informers=informers,
    )
    async with asyncio.TaskGroup() as group:
        group.create_task(runner.run())
        await runner.synced()
        if metrics is not None:
            metrics.follow(runner.mirror)
