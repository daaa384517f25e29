"""`volcano run FILE…`: submit, show what happens, end with the jobs.

With a running system it uses that; without one it starts its own in a temporary place and stops it at the end.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import click

from volcano.api.errors import ApiError
from volcano.api.meta import JSON
from volcano.app.component import run_until_signalled
from volcano.app.nodes import NodeOptions, node_options
from volcano.app.settings import data_directory
from volcano.app.up_command import running_system
from volcano.cli.live.job_follower import JobFollower
from volcano.cli.live.run_view import make_view
from volcano.cli.live.submit import SubmitError, read_manifests, submit
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock, SystemClock
from volcano.machinery.http_transport import HttpTransport
from volcano.machinery.kubeconfig import load_endpoint
from volcano.machinery.transport import Request

COMPLETED, UNSUCCESSFUL, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130


@click.command()
@click.argument("files", nargs=-1, required=True)
@click.option("--replace", is_flag=True, help="Run a finished job of the same name again.")
@click.option("-n", "--namespace", default="default", show_default=True, help="For objects that name none.")
@click.option("--data-dir", default=None, help="The running system to use; see `volcano up`.")
@click.option("--no-logs", is_flag=True, help="Do not show what the pods print.")
@node_options
def run_command(
    files: tuple[str, ...], replace: bool, namespace: str, data_dir: str | None, no_logs: bool, **nodes: Any
) -> None:
    """Submit the objects in FILES, show the jobs live, and end with them.

    \b
    Exit code: 0 all jobs Completed; 1 one Failed, was Aborted or Terminated; 2 bad input; 130 Ctrl-C.

    \b
    Examples:
      volcano run examples/gang.yaml
      volcano run --nodes 4 --node-cpu 4 queue.yaml job.yaml
    """
    try:
        documents = read_manifests(list(files))
    except SubmitError as error:
        click.echo(f"Error: {error}", err=True)
        raise SystemExit(BAD_INPUT) from error
    outcome: list[int] = []

    async def main() -> None:
        options = NodeOptions(**nodes)
        outcome.append(await _run(documents, options, data_dir, replace=replace, namespace=namespace, logs=not no_logs))

    run_until_signalled(main)
    raise SystemExit(outcome[0] if outcome else INTERRUPTED)


async def _run(
    documents: list[JSON], nodes: NodeOptions, data_dir: str | None, *, replace: bool, namespace: str, logs: bool
) -> int:
    clock = SystemClock()
    async with _host(data_dir, nodes, clock) as client:
        try:
            jobs = await submit(client, clock, documents, replace=replace, namespace=namespace)
        except (SubmitError, ApiError) as error:
            click.echo(f"Error: {error}", err=True)
            return BAD_INPUT
        if not jobs:
            click.echo(f"applied {len(documents)} objects; there is no job among them")
            return COMPLETED
        view = make_view()
        follower = JobFollower(client, clock, view, jobs, logs=logs)
        try:
            phases = await follower.follow()
        finally:
            view.close()
        for line in follower.endings():
            click.echo(line)
    return COMPLETED if all(phase == "Completed" for phase in phases.values()) else UNSUCCESSFUL


@contextlib.asynccontextmanager
async def _host(data_dir: str | None, nodes: NodeOptions, clock: Clock) -> AsyncIterator[Client]:
    """The running system, or one of our own for as long as we need it."""
    kubeconfig = data_directory(data_dir) / "kubeconfig"
    if kubeconfig.is_file():
        client = Client(HttpTransport(load_endpoint(kubeconfig), clock), agent="volcano-run")
        try:
            if await _answers(client):
                yield client
                return
        finally:
            await client.close()
    with tempfile.TemporaryDirectory(prefix="volcano-run-") as folder:
        async with running_system(Path(folder), nodes, clock, port=0, ephemeral=True) as system:
            yield system.client("volcano-run")


async def _answers(client: Client) -> bool:
    try:
        async with asyncio.timeout(5):
            await client.raw(Request("GET", "/readyz"))
    except (ApiError, OSError, TimeoutError):
        return False
    return True
