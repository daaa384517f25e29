"""`volcano controller-manager`: the flags, and the process that runs the controllers."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any, Final, TypeVar

import click

from volcano import __version__
from volcano.api.durations import DurationError, parse_duration
from volcano.api.meta import Key
from volcano.app.component import (
    common_options,
    connected,
    election_options,
    lead_or_just_work,
    parse_gates,
    run_component,
    serving_health,
)
from volcano.controllers.service.choice import DEFAULT_CONTROLLERS, UnknownController, parse_controllers
from volcano.controllers.service.job_metrics import ControllerMetrics
from volcano.controllers.service.manager import make_controllers, run_controllers
from volcano.controllers.service.routes import controller_routes
from volcano.controllers.service.settings import ControllerSettings
from volcano.controllers.sharding.settings import DEFAULTS
from volcano.machinery.clock import SystemClock
from volcano.machinery.controller import Controller
from volcano.machinery.http_endpoints import serving
from volcano.machinery.local_zone import local_zone

F = TypeVar("F", bound=Callable[..., Any])

CONTROLLERS_AGENT: Final = "vc-controller-manager"
CONTROLLERS_LEASE: Final = "vc-controller-manager"
WORKER_FLAGS: Final[Mapping[str, str]] = {
    "job": "worker_threads",
    "queue": "worker_threads_for_queue",
    "podgroup": "worker_threads_for_podgroup",
    "garbage": "worker_threads_for_gc",
    "cronjob": "worker_threads_for_cronjob",
}
"""The flag that says how many objects a controller works on at a time."""


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


@click.command()
@common_options(CONTROLLERS_LEASE)
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
    controllers = controllers_from(flags)
    run_component(lambda: _main(flags, controllers), verbosity=flags["verbosity"])


def controllers_from(flags: Mapping[str, Any]) -> list[Controller]:
    """Those that the flags choose."""
    try:
        chosen = parse_controllers(flags["controllers"])
    except UnknownController as error:
        raise click.BadParameter(str(error), param_hint="--controllers") from error
    try:
        return make_controllers(chosen, settings=settings_from(flags))
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--scheduler-configs") from error


async def _main(flags: dict[str, Any], controllers: list[Controller]) -> None:
    clock, metrics = SystemClock(), ControllerMetrics()
    async with contextlib.AsyncExitStack() as stack:
        await stack.enter_async_context(serving_health(clock, flags))
        if flags["enable_metrics"]:
            await stack.enter_async_context(serving(flags["listen_address"], controller_routes(metrics)))
        client = await stack.enter_async_context(
            connected(flags["kubeconfig"], flags["master"], clock=clock, agent=CONTROLLERS_AGENT)
        )
        workers = workers_from(flags)
        work = lambda: run_controllers(client, clock, controllers, workers=workers, metrics=metrics)  # noqa: E731
        await lead_or_just_work(client, clock, election_options(flags), work)


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
