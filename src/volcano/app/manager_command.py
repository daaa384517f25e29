"""`volcano manager`: scheduler and controllers in one process, with one set of watches and one copy of every object.

It holds the Leases of both, so that it never works beside a scheduler or controller manager that runs as a process of
its own.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import click
import msgspec

from volcano import __version__
from volcano.api.meta import Key
from volcano.app.component import (
    ElectionOptions,
    election_options,
    find_endpoint,
    lead_or_just_work,
    run_component,
    serving_health,
)
from volcano.app.controllers_command import (
    CONTROLLERS_AGENT,
    CONTROLLERS_LEASE,
    controller_manager_command,
    controllers_from,
    workers_from,
)
from volcano.app.job_expansion import expand_job
from volcano.app.scheduler_command import SCHEDULER_AGENT, scheduler_command, serving_scheduler, settings_from
from volcano.controllers.service.job_metrics import ControllerMetrics
from volcano.controllers.service.manager import run_controllers
from volcano.controllers.service.routes import controller_routes
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock, SystemClock
from volcano.machinery.controller import Controller
from volcano.machinery.http_endpoints import serving
from volcano.machinery.http_transport import HttpTransport
from volcano.machinery.informer_set import InformerSet
from volcano.machinery.transport import Transport
from volcano.scheduler.framework.config import InvalidConfig
from volcano.scheduler.service.registry import PluginError, load_registry
from volcano.scheduler.service.service import SchedulerService
from volcano.scheduler.service.settings import SchedulerSettings

NOT_TAKEN_OVER: Final = {"check_conf", "version"}


@click.command()
@click.option(
    "--controllers-listen-address",
    default=":8081",
    show_default=True,
    help="Where the controllers' /metrics is served.",
)
@click.version_option(__version__, prog_name="vc-manager")
def manager_command(**flags: Any) -> None:
    """Run the scheduler and the controllers in one process against any Kubernetes API server.

    It asks less of the API server than the two apart; for more than a few thousand nodes run them apart, so that each
    has a CPU of its own. It takes the flags of both.

    \b
    Example:
      volcano manager --kubeconfig ~/.kube/config --leader-elect=false
    """
    settings, controllers = settings_from(flags), controllers_from(flags)
    try:
        load_registry(settings.plugins_dir)
    except PluginError as error:
        raise click.ClickException(str(error)) from error
    run_component(lambda: _main(flags, settings, controllers), verbosity=flags["verbosity"])


def _flags_of_both() -> list[click.Parameter]:
    """The scheduler's, and those of the controllers that it does not have too."""
    found = {
        param.name: param for command in (controller_manager_command, scheduler_command) for param in command.params
    }
    return [param for name, param in found.items() if name not in NOT_TAKEN_OVER]


manager_command.params[:0] = _flags_of_both()


class JoinedComponents:
    """Both components on one transport; each writes under its own name."""

    def __init__(
        self,
        transport: Transport,
        clock: Clock,
        settings: SchedulerSettings,
        controllers: list[Controller],
        workers: Mapping[str, int] | None = None,
    ) -> None:
        self._clock, self._controllers, self._workers = clock, controllers, workers
        self.client = Client(transport, agent=CONTROLLERS_AGENT)
        self._informers = InformerSet(self.client, clock)
        scheduling = Client(transport, agent=SCHEDULER_AGENT)
        self.scheduler = SchedulerService(scheduling, clock, settings, expand_job=expand_job, informers=self._informers)
        self.metrics = ControllerMetrics()

    async def run(self) -> None:
        """Until cancelled; when one component fails, the other ends too."""
        controlling = run_controllers(
            self.client,
            self._clock,
            self._controllers,
            workers=self._workers,
            metrics=self.metrics,
            informers=self._informers,
        )
        async with asyncio.TaskGroup() as group:
            group.create_task(self.scheduler.run())
            group.create_task(controlling)


async def _main(flags: dict[str, Any], settings: SchedulerSettings, controllers: list[Controller]) -> None:
    clock = SystemClock()
    transport = HttpTransport(find_endpoint(flags["kubeconfig"], flags["master"]), clock)
    manager = JoinedComponents(transport, clock, settings, controllers, workers_from(flags))
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(transport.close)
        await stack.enter_async_context(serving_health(clock, flags))
        await stack.enter_async_context(serving_scheduler(manager.scheduler, flags))
        if flags["enable_metrics"]:
            routes = controller_routes(manager.metrics)
            await stack.enter_async_context(serving(flags["controllers_listen_address"], routes))
        try:
            await _lead_both(manager.client, clock, election_options(flags), manager.run)
        except ExceptionGroup as errors:
            invalid = errors.subgroup(InvalidConfig)
            if invalid is None:
                raise
            raise click.ClickException(str(invalid.exceptions[0])) from errors


async def _lead_both(
    client: Client, clock: Clock, options: ElectionOptions, work: Callable[[], Awaitable[None]]
) -> None:
    """Work while holding the scheduler's Lease and the controllers'."""
    of_controllers = msgspec.structs.replace(options, lease=Key(options.lease.namespace, CONTROLLERS_LEASE))
    await lead_or_just_work(client, clock, options, lambda: lead_or_just_work(client, clock, of_controllers, work))
