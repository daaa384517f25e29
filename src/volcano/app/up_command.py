"""`volcano up`: everything in one command. Owns the data directory, and the order of starting and stopping."""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import os
import resource
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

from volcano.app.component import log_to_stderr, parse_gates, run_until_signalled
from volcano.app.components import agent_makers, running_components
from volcano.app.dashboard_service import DEFAULT_PORT as DASHBOARD_PORT
from volcano.app.dashboard_service import dashboard_beside, parse_dashboard
from volcano.app.node_options import NodeOptions, node_options, process_count
from volcano.app.served_api import LOOPBACK, ServedApi, served_api
from volcano.app.settings import DEFAULT_PORT, HISTORY_FILE, SCHEDULER_CONFIGMAP, data_directory
from volcano.app.system_settings import SystemSettings
from volcano.controllers.service.choice import (
    DEFAULT_CONTROLLERS,
    SHARDING_CONTROLLER,
    UnknownController,
    parse_controllers,
)
from volcano.machinery.clock import Clock, SystemClock

if TYPE_CHECKING:
    from volcano.app.system import System
    from volcano.history.retention import RetentionSettings

STANDARD_ERROR: Final = 2
MIN_ADDRESS_SPACE_BYTES: Final = 2 * 2**30


@click.command()
@click.option("--data-dir", default=None, help="Where everything is kept [default: ~/.local/share/volcano].")
@click.option("--port", type=click.IntRange(0, 65535), default=DEFAULT_PORT, show_default=True,
              help="Port of the API server; unless it is given, a free one if it is taken.")  # fmt: skip
@click.option("--bind-address", default=LOOPBACK, show_default=True,
              help="Address of the API server; 0.0.0.0 for nodes on other machines.")  # fmt: skip
@click.option("--dashboard", default="", metavar="off|PORT|HOST:PORT",
              help=f"Where the dashboard is served [default: 127.0.0.1:{DASHBOARD_PORT}, or a free port].")  # fmt: skip
@click.option("--ephemeral", is_flag=True, help="Keep objects in memory only.")
@click.option("--scheduler-conf", default="", help="A volcano-scheduler.conf; changes are taken up as they are saved.")
@click.option("--plugins-dir", default="", help="A directory of scheduler plugins, one Python file each.")
@click.option("--scheduler-configmap", default=SCHEDULER_CONFIGMAP, show_default=True, metavar="NS/NAME:KEY")
@click.option("--feature-gates", default="", help="Name=true|false, separated by commas.")
@click.option(
    "--controllers", default=DEFAULT_CONTROLLERS, show_default=True, help="Which of Volcano's controllers run."
)
@click.option(
    "--scheduler-sharding-mode",
    type=click.Choice(["none", "hard", "soft"]),
    default="none",
    show_default=True,
    help="Whether the scheduler keeps to its NodeShard; starts the sharding controller.",
)
@click.option("--scheduler-sharding-name", default="volcano", show_default=True, help="The scheduler's NodeShard.")
@click.option(
    "--adopt-plain-pods",
    type=bool,
    default=True,
    is_flag=False,
    flag_value=True,
    show_default=True,
    help="Also place pods of the default scheduler; they are never evicted for others, unless they name a queue.",
)
@click.option("--history", type=click.Choice(["on", "off"]), default="on", show_default=True,
              help="Whether what happened to jobs is kept after they are gone.")  # fmt: skip
@click.option("--history-retention", default="2160h", show_default=True, help="How long ended jobs are kept.")
@click.option("--history-size", default="1Gi", show_default=True, help="How much room the history may take.")
@click.option("--keep-pods", is_flag=True, help="Leave pods running at the end; the next `up` finds them again.")
@click.option("-v", "--v", "verbosity", type=int, default=0, help="Log verbosity.")
@node_options
@click.pass_context
def up_command(context: click.Context, /, **flags: Any) -> None:
    """Start the whole system on this machine: API server, scheduler, controllers, admission, node.

    \b
    Examples:
      volcano up
      volcano up --nodes 4 --node-cpu 4 --node-memory 8Gi
      volcano up --ephemeral --simulated-nodes 1000
    """
    if flags["scheduler_conf"] and not Path(flags["scheduler_conf"]).is_file():
        raise click.BadParameter(f"there is no file {flags['scheduler_conf']}", param_hint="--scheduler-conf")
    _check_plugins(flags["plugins_dir"])
    settings = settings_from(flags)
    parse_dashboard(flags["dashboard"])
    if is_given(context, "history_retention") or is_given(context, "history_size"):
        history_from(flags)
    _check_address_space()
    log_to_stderr(flags["verbosity"] or -1)  # changes of state are printed anyway; -v asks for more
    nodes = NodeOptions(**{name: flags[name] for name in NodeOptions.__struct_fields__})
    explicit = is_given(context, "nodes")
    run_until_signalled(lambda: _up(context, nodes, flags, settings, explicit=explicit))


def _check_address_space() -> None:
    """Libraries in C end the process where their memory is refused; say so before, and say where if it happens."""
    faulthandler.enable(STANDARD_ERROR)
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < MIN_ADDRESS_SPACE_BYTES:
        least = MIN_ADDRESS_SPACE_BYTES // 2**20
        raise click.ClickException(
            f"the limit of {limit // 2**20} MiB of address space (ulimit -v) is too small: {least} MiB are needed; "
            "to bound the memory of the system use a cgroup (systemd-run -p MemoryMax=…)"
        )


def _check_plugins(folder: str) -> None:
    """Those of a directory; plugins of installed packages are checked when the scheduler is made."""
    if not folder:
        return
    if not Path(folder).is_dir():
        raise click.BadParameter(f"there is no directory {folder}", param_hint="--plugins-dir")
    from volcano.scheduler.service.registry import PluginError, load_registry

    try:
        load_registry(folder)
    except PluginError as error:
        raise click.ClickException(str(error)) from error


def settings_from(flags: dict[str, Any]) -> SystemSettings:
    """The flags that are the components' own, checked as the components' commands check them."""
    try:
        controllers = parse_controllers(flags["controllers"])
    except UnknownController as error:
        raise click.BadParameter(str(error), param_hint="--controllers") from error
    if flags["scheduler_sharding_mode"] != "none":
        controllers = [SHARDING_CONTROLLER, *controllers]  # the first mention of a controller counts
    return SystemSettings(
        scheduler_conf=flags["scheduler_conf"],
        scheduler_configmap=flags["scheduler_configmap"],
        plugins_dir=flags["plugins_dir"],
        controllers=tuple(controllers),
        gates=parse_gates(flags["feature_gates"]),
        sharding_mode=flags["scheduler_sharding_mode"],
        shard_name=flags["scheduler_sharding_name"],
        adopt_plain_pods=flags["adopt_plain_pods"],
    )


def history_from(flags: dict[str, Any]) -> RetentionSettings | None:
    """None: no history is kept."""
    if flags["history"] == "off":
        return None
    from volcano.history.retention import retention_from

    try:
        return retention_from(flags["history_retention"], flags["history_size"])
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--history-retention, --history-size") from error


def is_given(context: click.Context, name: str) -> bool:
    """Whether a flag is on the command line; its default leaves more freedom."""
    return context.get_parameter_source(name) == ParameterSource.COMMANDLINE


async def _up(
    context: click.Context,
    nodes: NodeOptions,
    flags: dict[str, Any],
    settings: SystemSettings,
    *,
    explicit: bool,
) -> None:
    folder, clock = data_directory(flags["data_dir"]), SystemClock()
    began = clock.monotonic()
    # Options that may be wrong are read before anything is served; reading others can wait.
    agents = None if nodes.are_plain else agent_makers(folder, nodes, clock, explicit=explicit)
    async with (
        served_api(
            folder,
            clock,
            port=flags["port"],
            must_have_port=bool(flags["port"]) and is_given(context, "port"),
            bind_address=flags["bind_address"],
            ephemeral=flags["ephemeral"],
            settings=settings,
        ) as api,
        _dashboard(api, folder, flags["dashboard"]) as (link, system_later),
    ):
        _print_ready(folder, clock.monotonic() - began, link, default=flags["data_dir"] is None)
        async with running_components(
            api,
            folder,
            nodes,
            explicit_nodes=explicit,
            agents=agents,
            keep_pods=flags["keep_pods"],
            history=history_from(flags),
            history_path=None if flags["ephemeral"] else folder / HISTORY_FILE,
        ) as system:
            system_later.set_result(system)
            await _report(system, clock, is_process_node=bool(process_count(nodes, given=explicit)))


async def _report(system: System, clock: Clock, *, is_process_node: bool) -> None:
    """Until cancelled: print what pods lack on this machine, and every change of state."""
    from volcano.cli.live.state_log import StateLog

    if is_process_node:
        for note in await clock.run(what_pods_lack):
            click.echo(f"  note: {note}", err=True)
    state_log = asyncio.ensure_future(StateLog(system.client("volcano-up"), clock, click.echo).run())
    try:
        await asyncio.Event().wait()
    finally:
        state_log.cancel()
        click.echo("stopping: pods are being ended (Ctrl-C again stops at once)")
        _exit_on_second_signal()


@contextlib.asynccontextmanager
async def _dashboard(api: ServedApi, folder: Path, chosen: str) -> AsyncIterator[tuple[str, asyncio.Future[System]]]:
    """Yields the link that signs in, empty where there is no dashboard, and who wants to know the system's parts."""
    address, system = parse_dashboard(chosen), asyncio.get_running_loop().create_future()
    if address is None:
        yield "", system
        return

    def announce(link: str) -> None:
        click.echo(f"dashboard: somebody signed in; the next link is {link}")

    async with dashboard_beside(system, folder, api.clock, address, announce) as link:
        yield link, system


def what_pods_lack() -> list[str]:
    """What this user cannot give to pods, with what the kernel would have to grant; `volcano doctor` has the rest."""
    from volcano.embedded.agent.kernel.linux import isolation_tier
    from volcano.embedded.agent.node.abilities import isolation, limits, networks

    tier = isolation_tier()
    lost = [each for each in (isolation(tier), networks(tier), limits()) if not each.is_there]
    return [f"{each.detail} (missing: {each.capability}); `volcano doctor` says what would help" for each in lost]


def _print_ready(folder: Path, seconds: float, link: str, *, default: bool) -> None:
    place = "" if default else f" --data-dir {folder}"
    click.echo(f"volcano is up ({seconds:.1f} s). Its kubeconfig: {folder / 'kubeconfig'}")
    click.echo(f'  eval "$(volcano env{place})"       then kubectl and vcctl speak to it')
    if link:
        click.echo(f"  dashboard: {link}")
    click.echo("  vcctl job list · kubectl get nodes · volcano run examples/gang.yaml")
    click.echo("  Ctrl-C stops it")


def _exit_on_second_signal() -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, os._exit, 130)
