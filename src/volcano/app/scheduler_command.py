"""`volcano scheduler`: flags, the address of its routes, and signals around scheduler.service."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import tempfile
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

import click

from volcano.api.durations import parse_duration
from volcano.app.component import (
    common_options,
    connected,
    election_options,
    lead_or_just_work,
    parse_feature_gates,
    run_component,
    serving_health,
)
from volcano.app.configuration_check import check_configuration
from volcano.app.job_expansion import expand_job
from volcano.controllers.service.gates import POD_GATES_FEATURE
from volcano.machinery.clock import SystemClock
from volcano.machinery.http_endpoints import serving
from volcano.scheduler.framework.config import InvalidConfig
from volcano.scheduler.service.configuration import ConfigMapKey
from volcano.scheduler.service.registry import PluginError, load_registry
from volcano.scheduler.service.routes import scheduler_routes
from volcano.scheduler.service.service import SchedulerService
from volcano.scheduler.service.settings import SchedulerSettings

SCHEDULER_AGENT: Final = "vc-scheduler"
ON: dict[str, Any] = {"type": bool, "is_flag": False, "flag_value": True}


@click.command()
@common_options("volcano")
@click.option("--scheduler-name", "scheduler_names", multiple=True, default=("volcano",), show_default=True)
@click.option("--scheduler-conf", default="", help="Path of the configuration.")
@click.option("--scheduler-configmap", default="", help="NAMESPACE/NAME:KEY of a ConfigMap with the configuration.")
@click.option(
    "--check-conf",
    default="",
    metavar="FILE",
    help="Say all that is wrong with a configuration or a ConfigMap's manifest, with lines, and end."
    " Exit code: 0 fine, 1 something is wrong, 2 it cannot be read.",
)
@click.option("--schedule-period", default="1s", show_default=True, help="The longest time between two cycles.")
@click.option("--default-queue", default="default", show_default=True, help="The queue of jobs that name none.")
@click.option("--adopt-plain-pods", default=False, help="Also place pods of the default scheduler.", **ON)
@click.option("--plugins-dir", default="", help="A directory of plugins, one Python file each.")
@click.option("--node-selector", multiple=True, metavar="KEY:VALUE", help="Use only nodes with one of these labels.")
@click.option("--ignored-provisioners", multiple=True, help="Provisioners whose volumes are not counted.")
@click.option("--scheduler-sharding-mode", type=click.Choice(["none", "hard", "soft"]), default="none")
@click.option("--scheduler-sharding-name", default="volcano", show_default=True)
@click.option("--disable-default-scheduler-config", default=False, help="No built-in configuration.", **ON)
@click.option("--resource-sync-timeout", default="60s", show_default=True)
@click.option("--listen-address", default=":8080", show_default=True, help="Where /metrics and /simulate are served.")
@click.option("--record", "record_dir", default="", help="Write the input of every cycle into this directory.")
@click.option("--redact", is_flag=True, help="Replace names in what is recorded.")
@click.option("--cache-dump-dir", default="", help="Where SIGUSR1 records the next cycle.")
@click.option("--cache-dumper", default=True, hidden=True, **ON)
@click.option("--enable-pprof", default=False, hidden=True, **ON)
@click.option("--priority-class", default=True, hidden=True, **ON)
@click.option("--csi-storage", default=True, hidden=True, **ON)
@click.option("--resync-period", default="0", hidden=True)
@click.option("--kube-api-qps", type=float, default=2000.0, hidden=True)
@click.option("--kube-api-burst", type=int, default=2000, hidden=True)
@click.option("--minimum-feasible-nodes", type=int, default=100, hidden=True)
@click.option("--minimum-percentage-nodes-to-find", type=int, default=5, hidden=True)
@click.option("--percentage-nodes-to-find", type=int, default=0, hidden=True)
@click.option("--node-worker-threads", type=int, default=20, hidden=True)
@click.option("--gate-removal-worker-num", type=int, default=5, hidden=True)
def scheduler_command(**flags: Any) -> None:
    """Run the scheduler against any Kubernetes API server.

    \b
    Examples:
      volcano scheduler --kubeconfig ~/.kube/config --scheduler-conf volcano-scheduler.conf
      volcano scheduler --check-conf volcano-scheduler.conf
    """
    if flags["check_conf"]:
        raise SystemExit(check_configuration(flags["check_conf"], flags["plugins_dir"]))
    settings = settings_from(flags)
    try:
        load_registry(settings.plugins_dir)
    except PluginError as error:
        raise click.ClickException(str(error)) from error
    run_component(lambda: _main(flags, settings), verbosity=flags["verbosity"])


def settings_from(flags: dict[str, Any]) -> SchedulerSettings:
    gates = parse_feature_gates(flags["feature_gates"])
    selector = [item.partition(":") for entry in flags["node_selector"] for item in entry.split(",") if item]
    if flags["scheduler_configmap"]:
        try:
            ConfigMapKey.parse(flags["scheduler_configmap"])
        except ValueError as error:
            raise click.BadParameter(str(error), param_hint="--scheduler-configmap") from error
    return SchedulerSettings(
        scheduler_conf=flags["scheduler_conf"],
        scheduler_configmap=flags["scheduler_configmap"],
        scheduler_names=tuple(flags["scheduler_names"]),
        adopt_plain_pods=flags["adopt_plain_pods"],
        schedule_period=parse_duration(flags["schedule_period"]),
        default_queue=flags["default_queue"],
        node_selector=tuple((key.strip(), value.strip()) for key, _, value in selector),
        ignored_provisioners=tuple(flags["ignored_provisioners"]),
        sharding_mode=flags["scheduler_sharding_mode"],
        shard_name=flags["scheduler_sharding_name"],
        admits_by_gate=gates.get(POD_GATES_FEATURE, False),
        plugins_dir=flags["plugins_dir"],
        needs_own_configuration=flags["disable_default_scheduler_config"],
        sync_timeout=parse_duration(flags["resource_sync_timeout"]),
        record_dir=flags["record_dir"],
        redact=flags["redact"],
    )


@contextlib.asynccontextmanager
async def serving_scheduler(service: SchedulerService, flags: Mapping[str, Any]) -> AsyncIterator[None]:
    """The scheduler's routes, where the flags ask for them, and SIGUSR1, which records a cycle."""
    dump_dir = flags["cache_dump_dir"] or service.settings.record_dir or tempfile.gettempdir()
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, service.recordings.request, dump_dir)
    if not flags["enable_metrics"]:
        yield
        return
    async with serving(flags["listen_address"], scheduler_routes(service, dump_dir)):
        yield


async def _main(flags: dict[str, Any], settings: SchedulerSettings) -> None:
    clock = SystemClock()
    async with contextlib.AsyncExitStack() as stack:
        client = await stack.enter_async_context(
            connected(flags["kubeconfig"], flags["master"], clock=clock, agent=SCHEDULER_AGENT)
        )
        service = SchedulerService(client, clock, settings, expand_job=expand_job)
        await stack.enter_async_context(serving_health(clock, flags))
        await stack.enter_async_context(serving_scheduler(service, flags))
        try:
            await lead_or_just_work(client, clock, election_options(flags), service.run)
        except InvalidConfig as error:
            raise click.ClickException(str(error)) from error
