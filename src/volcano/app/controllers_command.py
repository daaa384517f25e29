"""`volcano controller-manager`: which controllers exist, which are on, and the process that runs them.

What they are told (flags, feature gates) is in controller_settings.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import click

from volcano import __version__
from volcano.app.component import (
    common_options,
    connected,
    election_options,
    lead_or_just_work,
    run_component,
    tls_context,
)
from volcano.app.controller_settings import ControllerSettings, controller_options, settings_from, workers_from
from volcano.app.endpoints import health_route, metrics_route, serving
from volcano.controllers.service.job_metrics import ControllerMetrics
from volcano.controllers.service.probing import ask
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock, SystemClock
from volcano.machinery.controller import Controller
from volcano.machinery.runner import WORKERS, Runner

DEFAULT_CONTROLLERS: Final = "*,-sharding-controller"
NAMES: Final = (
    "job-controller",
    "queue-controller",
    "pg-controller",
    "gc-controller",
    "jobflow-controller",
    "jobtemplate-controller",
    "cronjob-controller",
    "hyperNode-controller",
    "colocation-config-controller",
    "sharding-controller",
)
GATED: Final = {"job-controller": "VolcanoJobSupport", "cronjob-controller": "CronVolcanoJobSupport"}
"""Controllers that a feature gate turns off as a whole."""


def is_enabled(name: str, chosen: Iterable[str]) -> bool:
    """`name` or `+name` turns on, `-name` off, the first mention wins; otherwise `*`, or an empty list, is on."""
    chosen = list(chosen)
    for item in chosen:
        if item in (name, f"+{name}"):
            return True
        if item == f"-{name}":
            return False
    return not chosen or "*" in chosen


def parse_controllers(text: str) -> list[str]:
    chosen = [item.strip() for item in text.split(",") if item.strip()]
    mentioned = [item.lstrip("+-") for item in chosen if item != "*"]
    for name in mentioned:
        if name not in NAMES:
            raise click.BadParameter(f"there is no controller {name!r}; known: {', '.join(NAMES)}")
        if mentioned.count(name) > 1:
            raise click.BadParameter(f"controllers option {name!r} is named twice")
    return chosen


def make_controllers(
    chosen: Iterable[str] = tuple(DEFAULT_CONTROLLERS.split(",")), *, settings: ControllerSettings | None = None
) -> list[Controller]:
    """The controllers of a Volcano installation that are on."""
    chosen, settings = list(chosen), settings or ControllerSettings()
    gated_off = {name for name, gate in GATED.items() if not settings.has(gate)}
    makers = _makers(settings)
    return [make() for name, make in makers.items() if is_enabled(name, chosen) and name not in gated_off]


def _makers(settings: ControllerSettings) -> dict[str, Callable[[], Controller]]:
    from volcano.controllers.colocation import ColocationController
    from volcano.controllers.cronjob import CronJobController
    from volcano.controllers.garbage import GarbageController
    from volcano.controllers.hypernode import HyperNodeController
    from volcano.controllers.job import JobController
    from volcano.controllers.jobflow import JobFlowController, JobTemplateController
    from volcano.controllers.podgroup import PodGroupController
    from volcano.controllers.queue import QueueController

    commands = settings.has("QueueCommandSync")
    return {
        "job-controller": lambda: JobController(
            max_requeue=settings.max_requeue, commands=commands, priority_classes=settings.has("PriorityClass")
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
        "sharding-controller": lambda: _sharding(settings),
    }


def _sharding(settings: ControllerSettings) -> Controller:
    from volcano.controllers.sharding import ShardingController
    from volcano.controllers.sharding.settings import from_flags

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
) -> None:
    runner = Runner(
        client, clock, controllers, component="vc-controller-manager", workers=workers or WORKERS, probe=ask
    )
    async with asyncio.TaskGroup() as group:
        group.create_task(runner.run())
        await runner.synced()
        if metrics is not None:
            metrics.follow(runner.mirror)


@click.command()
@common_options("vc-controller-manager")
@click.option("--kube-api-qps", type=float, default=50.0, hidden=True)
@click.option("--kube-api-burst", type=int, default=100, hidden=True)
@click.option("--listen-address", default=":8081", show_default=True, help="Where /metrics is served.")
@click.option("--controllers", default=DEFAULT_CONTROLLERS, show_default=True, help="Which controllers run.")
@controller_options
@click.version_option(__version__, prog_name="vc-controller-manager")
def controller_manager_command(**flags: Any) -> None:
    """Run Volcano's controllers against any Kubernetes API server.

    \b
    Example:
      volcano controller-manager --kubeconfig ~/.kube/config --leader-elect=false
    """
    try:
        controllers = make_controllers(parse_controllers(flags["controllers"]), settings=settings_from(flags))
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--scheduler-configs") from error
    run_component(lambda: _main(flags, controllers), verbosity=flags["verbosity"])


async def _main(flags: dict[str, Any], controllers: list[Controller]) -> None:
    clock, metrics = SystemClock(), ControllerMetrics()
    async with contextlib.AsyncExitStack() as stack:
        if flags["enable_healthz"]:
            context = tls_context(flags["tls_cert_file"], flags["tls_private_key_file"], flags["ca_cert_file"])
            routes = {("GET", "/healthz"): health_route()}
            await stack.enter_async_context(serving(flags["healthz_address"], routes, context))
        if flags["enable_metrics"]:
            routes = {("GET", "/metrics"): metrics_route(metrics.registry)}
            await stack.enter_async_context(serving(flags["listen_address"], routes))
        client = await stack.enter_async_context(
            connected(flags["kubeconfig"], flags["master"], clock=clock, agent="vc-controller-manager")
        )
        workers = workers_from(flags)
        work = lambda: run_controllers(client, clock, controllers, workers=workers, metrics=metrics)  # noqa: E731
        await lead_or_just_work(client, clock, election_options(flags), work)
