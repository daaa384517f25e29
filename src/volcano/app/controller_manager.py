"""`volcano controller-manager`: which controllers exist, which are on, and the process that runs them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from typing import Any, Final

import click

from volcano.app.component import (
    common_options,
    connected,
    election_options,
    lead_or_just_work,
    parse_feature_gates,
    run_component,
    tls_context,
)
from volcano.app.controller_metrics import ControllerMetrics
from volcano.app.endpoints import health_route, metrics_route, serving
from volcano.app.probing import ask
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock, SystemClock
from volcano.machinery.controller import Controller
from volcano.machinery.runner import Runner

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
    chosen: Iterable[str] = tuple(DEFAULT_CONTROLLERS.split(",")),
    *,
    scheduler_names: tuple[str, ...] = ("volcano",),
    inherit_owner_annotations: bool = True,
) -> list[Controller]:
    """The controllers of a Volcano installation that are on."""
    chosen = list(chosen)
    makers = _makers(scheduler_names, inherit_owner_annotations)
    return [controller for name, make in makers.items() if is_enabled(name, chosen) for controller in make()]


def _makers(
    scheduler_names: tuple[str, ...], inherit_owner_annotations: bool
) -> dict[str, Callable[[], list[Controller]]]:
    from volcano.controllers.colocation import ColocationController
    from volcano.controllers.cronjob import CronJobController
    from volcano.controllers.garbage import GarbageController
    from volcano.controllers.hypernode import HyperNodeController
    from volcano.controllers.job import JobController
    from volcano.controllers.jobflow import JobFlowController, JobTemplateController
    from volcano.controllers.podgroup import PodGroupController
    from volcano.controllers.queue import QueueController
    from volcano.controllers.sharding import ShardingController

    return {
        "job-controller": lambda: [JobController()],
        "queue-controller": lambda: [QueueController()],
        "pg-controller": lambda: [
            PodGroupController(scheduler_names=scheduler_names, inherit_owner_annotations=inherit_owner_annotations)
        ],
        "gc-controller": lambda: [GarbageController()],
        "jobflow-controller": lambda: [JobFlowController()],
        "jobtemplate-controller": lambda: [JobTemplateController()],
        "cronjob-controller": lambda: [CronJobController()],
        "hyperNode-controller": lambda: [HyperNodeController()],
        "colocation-config-controller": lambda: [ColocationController()],
        "sharding-controller": lambda: [ShardingController()],
    }


async def run_controllers(
    client: Client, clock: Clock, controllers: list[Controller], metrics: ControllerMetrics | None = None
) -> None:
    runner = Runner(client, clock, controllers, component="vc-controller-manager", probe=ask)
    async with asyncio.TaskGroup() as group:
        group.create_task(runner.run())
        await runner.synced()
        if metrics is not None:
            metrics.follow(runner.mirror)


@click.command()
@common_options("vc-controller-manager")
@click.option("--kube-api-qps", type=float, default=50.0, hidden=True)
@click.option("--kube-api-burst", type=int, default=100, hidden=True)
@click.option("--scheduler-name", "scheduler_names", multiple=True, default=("volcano",), show_default=True)
@click.option("--max-requeue-num", type=int, default=15, hidden=True)
@click.option("--worker-threads", type=int, default=3, hidden=True)
@click.option("--worker-threads-for-queue", type=int, default=5, hidden=True)
@click.option("--worker-threads-for-podgroup", type=int, default=5, hidden=True)
@click.option("--worker-threads-for-gc", type=int, default=1, hidden=True)
@click.option("--worker-threads-for-cronjob", type=int, default=3, hidden=True)
@click.option("--listen-address", default=":8081", show_default=True, help="Where /metrics is served.")
@click.option("--inherit-owner-annotations", type=bool, default=True, is_flag=False, flag_value=True)
@click.option("--controllers", default=DEFAULT_CONTROLLERS, show_default=True, help="Which controllers run.")
def controller_manager_command(**flags: Any) -> None:
    """Run Volcano's controllers against any Kubernetes API server.

    \b
    Example:
      volcano controller-manager --kubeconfig ~/.kube/config --leader-elect=false
    """
    chosen = parse_controllers(flags["controllers"])
    parse_feature_gates(flags["feature_gates"])
    controllers = make_controllers(
        chosen,
        scheduler_names=tuple(flags["scheduler_names"]),
        inherit_owner_annotations=flags["inherit_owner_annotations"],
    )
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
        work = lambda: run_controllers(client, clock, controllers, metrics)  # noqa: E731
        await lead_or_just_work(client, clock, election_options(flags), work)
