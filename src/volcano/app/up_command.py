"""`volcano up`: everything in one command. Owns the data directory, and the order of starting and stopping."""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import fcntl
import logging
import os
import resource
import signal
import stat
from collections.abc import AsyncIterator, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import click
import msgspec
from click.core import ParameterSource

from volcano.admission.review import Settings as AdmissionSettings
from volcano.api.core import Pod
from volcano.api.errors import ApiError
from volcano.api.meta import Key
from volcano.api.scheme import resource_type
from volcano.app.admission_plug import VolcanoAdmission
from volcano.app.component import log_to_stderr, run_until_signalled
from volcano.app.controllers_command import parse_gates
from volcano.app.dashboard_service import DEFAULT_PORT as DASHBOARD_PORT
from volcano.app.dashboard_service import dashboard_beside, parse_dashboard
from volcano.app.local_history import HISTORY_FILE, local_history
from volcano.app.metrics_ports import metrics_ports
from volcano.app.nodes import NodeOptions, node_options, process_count, process_settings, simulated_settings
from volcano.app.port_holder import holder_of
from volcano.app.settings import DEFAULT_PORT, SCHEDULER_CONFIGMAP, data_directory
from volcano.app.system import AgentMaker, System, SystemSettings
from volcano.cli.live.state_log import StateLog
from volcano.controllers.service.manager import (
    DEFAULT_CONTROLLERS,
    SHARDING_CONTROLLER,
    UnknownController,
    parse_controllers,
)
from volcano.controllers.service.settings import POD_GATES_FEATURE
from volcano.embedded.agent.agent import Agent
from volcano.embedded.agent.containers.process_settings import ProcessSettings
from volcano.embedded.agent.kernel.linux import isolation_tier
from volcano.embedded.agent.lifecycle.pod_lifecycle import SHUTDOWN_MESSAGE
from volcano.embedded.agent.node.abilities import isolation, limits, networks
from volcano.embedded.agent.node.settings import NodeSettings
from volcano.embedded.agent.runtime.simulated_runtime import SimulatedRuntime
from volcano.embedded.apiserver.server import ApiServer
from volcano.embedded.apiserver.serving.serve import Serving, serve
from volcano.embedded.apiserver.store.log_file import UnusableFile
from volcano.embedded.apiserver.store.memory_store import MemoryStore
from volcano.embedded.apiserver.store.sqlite_store import SqliteStore
from volcano.history.history import History
from volcano.history.retention import RetentionSettings, retention_from
from volcano.machinery.certificates import Authority, service_account_key
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock, SystemClock
from volcano.machinery.https_server import PortUnavailable
from volcano.scheduler.service.registry import PluginError, load_registry

log = logging.getLogger(__name__)

STORE: Final = "volcano.db"
PODS: Final = resource_type(Pod)
STANDARD_ERROR: Final = 2
MIN_ADDRESS_SPACE_BYTES: Final = 2 * 2**30
LOOPBACK: Final = "127.0.0.1"
SHUTDOWN_GRACE: Final = timedelta(seconds=30)


class DataDirectoryInUse(click.ClickException):
    """Another `volcano up` holds the data directory."""


class UnusableDataDirectory(click.ClickException):
    """The data directory cannot be written."""


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep a second system away from this data directory for as long as this process lives."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        _keep_others_out(folder)
        handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise UnusableDataDirectory(
            f"nothing can be kept in {folder}: {error.strerror}; choose another --data-dir"
        ) from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(handle, 32, 0).decode(errors="replace").strip()
            whom = f" (process {holder})" if holder else ""
            raise DataDirectoryInUse(
                f"{folder} is in use by another `volcano up`{whom}; stop that one, or choose another --data-dir"
            ) from error
        os.ftruncate(handle, 0)
        os.pwrite(handle, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(handle)


def _keep_others_out(folder: Path) -> None:
    """Only the owner enters the data directory, which has all Secrets and keys in it."""
    mode = folder.stat().st_mode
    if mode & stat.S_ISVTX:
        raise UnusableDataDirectory(f"{folder} is shared by all users; choose a --data-dir of its own inside it")
    if mode & 0o077:
        folder.chmod(0o700)
        log.warning("%s could be entered by other users; now only its owner can", folder)


@contextlib.asynccontextmanager
async def running_system(
    folder: Path,
    nodes: NodeOptions,
    clock: Clock,
    *,
    port: int = DEFAULT_PORT,
    must_have_port: bool = False,
    bind_address: str = LOOPBACK,
    ephemeral: bool = False,
    settings: SystemSettings | None = None,
    explicit_nodes: bool = True,
    keep_pods: bool = False,
    has_metrics_ports: bool = True,
    history: RetentionSettings | None = None,
) -> AsyncIterator[System]:
    """The system, ready, for as long as the block runs; then everything is stopped in order."""
    with locked(folder):
        store = MemoryStore() if ephemeral else open_store(folder / STORE)
        settings = settings or SystemSettings()
        admission = VolcanoAdmission(
            store,
            AdmissionSettings(scheduler_names=settings.scheduler_names, gates_pods=settings.gates[POD_GATES_FEATURE]),
        )
        signing_key = service_account_key(folder / "pki")
        server = ApiServer(store, clock=clock, admission=admission, signing_key=signing_key)
        try:
            await server.start()
            authority = Authority(folder / "pki", clock.now())
            settings = msgspec.structs.replace(settings, root_certificate=authority.pair.certificate.decode())
            agents = agent_makers(folder, nodes, clock, explicit=explicit_nodes)
            system = System(server, clock, settings=settings, agents=agents)
            admission.record = system.controllers.recorder.record
            server.health.add("system", lambda: "" if system.is_ready else "starting")
            async with (
                serve_here(server, folder, clock, port=port, must_have_port=must_have_port, host=bind_address),
                _running(system, keep_pods=keep_pods),
                metrics_ports(system) if has_metrics_ports else contextlib.nullcontext(),
                kept_history(system, clock, None if ephemeral else folder / HISTORY_FILE, history),
            ):
                yield system
        finally:
            await server.close()


def kept_history(
    system: System, clock: Clock, path: Path | None, retention: RetentionSettings | None
) -> contextlib.AbstractAsyncContextManager[History | None]:
    """The history as the flags ask for it; `retention` None: none is kept."""
    if retention is None:
        return contextlib.nullcontext()
    return local_history(system, clock, path=path, retention=retention)


@contextlib.asynccontextmanager
async def serve_here(
    server: ApiServer, folder: Path, clock: Clock, *, port: int, must_have_port: bool, host: str = LOOPBACK
) -> AsyncIterator[Serving]:
    """Serve with the keys of a data directory; a port that cannot be had is refused with who has it."""
    try:
        async with serve(
            server,
            pki=folder / "pki",
            clock=clock,
            host=host,
            port=port,
            must_have_port=must_have_port,
            kubeconfig_path=folder / "kubeconfig",
        ) as serving:
            if port and serving.port != port:
                click.echo(f"port {port} is taken; the API server listens on port {serving.port}", err=True)
            yield serving
    except PortUnavailable as error:
        holder = await clock.run(lambda: holder_of(port))
        whose = f"; {holder} listens there" if holder else ""
        raise click.ClickException(f"{error.strerror}{whose}; choose another --port") from error


def open_store(path: Path) -> SqliteStore:
    """The store on disk; one that cannot be used is left as it is, and named."""
    try:
        return SqliteStore(path)
    except UnusableFile as error:
        raise click.ClickException(str(error)) from error


@contextlib.asynccontextmanager
async def _running(system: System, *, keep_pods: bool) -> AsyncIterator[None]:
    running = asyncio.ensure_future(system.run())
    try:
        await _ready_or_failed(system, running)
        yield
    finally:
        if not keep_pods and not running.done():
            await system.stop_deciding()  # a pod that is ended now must not count as failed
            await end_pods(system)
            await remove_ended_pods(system.client("volcano-up"))
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def _ready_or_failed(system: System, running: asyncio.Future[None]) -> None:
    ready = asyncio.ensure_future(system.ready())
    await asyncio.wait({ready, running}, return_when=asyncio.FIRST_COMPLETED)
    if running.done():
        ready.cancel()
        running.result()


async def end_pods(system: System) -> None:
    """As a node's shutdown does: TERM, then KILL, and each pod's status says so."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout((SHUTDOWN_GRACE * 2).total_seconds()):
            await asyncio.gather(*(agent.shut_down(SHUTDOWN_GRACE) for agent in system.agents))


async def remove_ended_pods(client: Client) -> None:
    """Pods that ended with the system are made again by their owners at its next start, as their policies say."""
    found = await client.list_json(PODS, "")
    for pod in found.get("items") or ():
        status, metadata = pod.get("status") or {}, pod["metadata"]
        is_owned = any(owner.get("controller") for owner in metadata.get("ownerReferences") or ())
        if is_owned and status.get("message") == SHUTDOWN_MESSAGE:
            with contextlib.suppress(ApiError):
                await client.delete(PODS, Key(metadata["namespace"], metadata["name"]), {"gracePeriodSeconds": 0})


def agent_makers(folder: Path, nodes: NodeOptions, clock: Clock, *, explicit: bool) -> list[AgentMaker]:
    """One agent for all simulated nodes, one for all process nodes."""
    makers: list[AgentMaker] = []
    simulated = simulated_settings(nodes)
    if simulated is not None:
        makers.append(lambda client: Agent(client, clock, simulated, SimulatedRuntime(clock)))
    processes = process_settings(nodes, folder, given=explicit)
    if processes is not None:
        makers.append(lambda client: process_agent(client, clock, *processes, pki=folder / "pki"))
    return makers


def process_agent(client: Client, clock: Clock, nodes: NodeSettings, processes: ProcessSettings, *, pki: Path) -> Agent:
    """An agent whose pods are processes of this machine; its logs and exec are served with our CA's certificate."""
    from volcano.embedded.agent.process_agent import make_process_agent
    from volcano.embedded.agent.streams.kubelet_server import KubeletTls

    authority = Authority(pki, clock.now())

    def renew(now: datetime) -> Path:
        return authority.node_pair(("localhost", nodes.address), now)

    tls = KubeletTls(renew(clock.now()), authority.certificate_path, renew)
    return make_process_agent(client, clock, nodes, processes, tls=tls)


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
    history = history_from(flags)
    _check_address_space()
    log_to_stderr(flags["verbosity"] or -1)  # changes of state are printed anyway; -v asks for more
    nodes = NodeOptions(**{name: flags[name] for name in NodeOptions.__struct_fields__})
    explicit = is_given(context, "nodes")
    run_until_signalled(lambda: _up(context, nodes, flags, settings, history, explicit=explicit))


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
    if folder and not Path(folder).is_dir():
        raise click.BadParameter(f"there is no directory {folder}", param_hint="--plugins-dir")
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
    history: RetentionSettings | None,
    *,
    explicit: bool,
) -> None:
    folder, clock = data_directory(flags["data_dir"]), SystemClock()
    began = clock.monotonic()
    async with (
        running_system(
            folder,
            nodes,
            clock,
            port=flags["port"],
            must_have_port=bool(flags["port"]) and is_given(context, "port"),
            bind_address=flags["bind_address"],
            ephemeral=flags["ephemeral"],
            settings=settings,
            explicit_nodes=explicit,
            keep_pods=flags["keep_pods"],
            history=history,
        ) as system,
        _dashboard(system, folder, clock, flags["dashboard"]) as link,
    ):
        _print_ready(folder, clock.monotonic() - began, link, default=flags["data_dir"] is None)
        if process_count(nodes, given=explicit):
            for note in await clock.run(lambda: what_pods_lack()):
                click.echo(f"  note: {note}", err=True)
        state_log = asyncio.ensure_future(StateLog(system.client("volcano-up"), clock, click.echo).run())
        try:
            await asyncio.Event().wait()
        finally:
            state_log.cancel()
            click.echo("stopping: pods are being ended (Ctrl-C again stops at once)")
            _exit_on_second_signal()


@contextlib.asynccontextmanager
async def _dashboard(system: System, folder: Path, clock: Clock, chosen: str) -> AsyncIterator[str]:
    """Yields the link that signs in, or nothing where there is no dashboard."""
    address = parse_dashboard(chosen)
    if address is None:
        yield ""
        return

    def announce(link: str) -> None:
        click.echo(f"dashboard: somebody signed in; the next link is {link}")

    async with dashboard_beside(system, folder, clock, address, announce) as link:
        yield link


def what_pods_lack() -> list[str]:
    """What this user cannot give to pods, with what the kernel would have to grant; `volcano doctor` has the rest."""
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
