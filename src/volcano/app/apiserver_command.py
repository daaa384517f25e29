"""`volcano apiserver`: the embedded Kubernetes API alone, for other components and tests to use."""

from __future__ import annotations

import asyncio
from typing import Any

import click

from volcano.app.admission_plug import VolcanoAdmission
from volcano.app.component import log_to_stderr, run_until_signalled
from volcano.app.data_directory_lock import locked
from volcano.app.served_api import open_store, serve_here
from volcano.app.settings import DEFAULT_PORT, STORE, data_directory
from volcano.app.up_command import is_given
from volcano.embedded.apiserver.server import ApiServer
from volcano.embedded.apiserver.store.memory_store import MemoryStore
from volcano.machinery.certificates import service_account_key
from volcano.machinery.clock import SystemClock


@click.command()
@click.option("--data-dir", default=None, help="Where everything is kept [default: ~/.local/share/volcano].")
@click.option("--port", type=click.IntRange(0, 65535), default=DEFAULT_PORT, show_default=True,
              help="Port to listen on; unless it is given, a free one if it is taken.")  # fmt: skip
@click.option("--bind-address", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--ephemeral", is_flag=True, help="Keep objects in memory only.")
@click.option("--admission/--no-admission", default=True, show_default=True, help="Volcano's admission, in process.")
@click.option("-v", "--v", "verbosity", type=int, default=0, help="Log verbosity.")
@click.pass_context
def apiserver_command(context: click.Context, /, **flags: Any) -> None:
    """Run the embedded API server alone: no scheduler, no controllers, no node.

    \b
    Example:
      volcano apiserver --ephemeral --data-dir /tmp/api
    """
    log_to_stderr(flags["verbosity"])
    run_until_signalled(lambda: _main(context, flags))


async def _main(context: click.Context, flags: dict[str, Any]) -> None:
    folder, clock = data_directory(flags["data_dir"]), SystemClock()
    with locked(folder):
        store = MemoryStore() if flags["ephemeral"] else open_store(folder / STORE)
        admission = VolcanoAdmission(store) if flags["admission"] else None
        signing_key = service_account_key(folder / "pki")
        server = ApiServer(store, clock=clock, admission=admission, signing_key=signing_key)
        try:
            await server.start()
            async with serve_here(
                server,
                folder,
                clock,
                host=flags["bind_address"],
                port=flags["port"],
                must_have_port=bool(flags["port"]) and is_given(context, "port"),
            ) as serving:
                click.echo(f"the API is at {serving.url}; its kubeconfig: {folder / 'kubeconfig'}")
                await asyncio.Event().wait()
        finally:
            await server.close()
