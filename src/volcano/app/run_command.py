"""`volcano run FILE…`: submit, show what happens, end with the jobs.

With a running system it uses that; without one it starts its own in a temporary place and stops it at the end.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import click

from volcano.api.errors import ApiError, NotFound
from volcano.api.meta import JSON, Key
from volcano.api.scheme import ResourceType
from volcano.app.component import run_until_signalled
from volcano.app.components import running_system
from volcano.app.node_options import NodeOptions, node_options
from volcano.app.settings import data_directory
from volcano.cli.live.job_follower import JOBS, JobFollower
from volcano.cli.live.run_view import RunView, make_view
from volcano.cli.live.submit import SubmitError, read_manifests, submit
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock, SystemClock
from volcano.machinery.http_transport import HttpTransport
from volcano.machinery.kubeconfig import load_endpoint
from volcano.machinery.transport import Request

COMPLETED, UNSUCCESSFUL, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130
SECOND_PRESS_SECONDS = 3.0


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

    Jobs of Volcano's and Kubernetes' own (batch/v1) and flows are followed to their end, and of a cron job its first
    run; Deployments and the like are applied and not followed. Ctrl-C says what goes on; twice ends it.

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
    async with _host(data_dir, nodes, clock) as (client, is_own):
        try:
            submitted = await submit(client, clock, documents, replace=replace, namespace=namespace)
        except (SubmitError, ApiError) as error:
            click.echo(f"Error: {error}", err=True)
            return BAD_INPUT
        for name in submitted.endless:
            click.echo(f"{name} was applied; it is not followed, since it runs until it is deleted")
        if not submitted.has_end:
            gone = (
                "; the system that was started for them ends now, `volcano up` starts one that stays" if is_own else ""
            )
            click.echo(f"applied {len(documents)} objects; there is no job among them{gone}")
            return COMPLETED
        view = make_view()
        follower = JobFollower(
            client,
            clock,
            view,
            submitted.jobs,
            logs=logs,
            makers=submitted.makers,
            batch_jobs=submitted.batch_jobs,
            advise=view.advise,
        )
        try:
            if not await _followed(follower, client, view, is_own=is_own):
                return INTERRUPTED
        finally:
            view.close()
        for line in follower.endings():
            click.echo(line)
    return COMPLETED if follower.all_succeeded else UNSUCCESSFUL


async def _followed(follower: JobFollower, client: Client, view: RunView, *, is_own: bool) -> bool:
    """To the end, unless Ctrl-C is pressed twice, or once where the jobs go on without us."""
    pressed: asyncio.Queue[None] = asyncio.Queue()
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, pressed.put_nowait, None)
    following = asyncio.ensure_future(follower.follow())
    try:
        if await _first_of(following, pressed):
            return True
        left = ", ".join(follower.unfinished)
        if is_own:
            view.line(f"{left}: still running. Ctrl-C again ends it, and the system that was started for it")
            return await _first_of(following, pressed)
        later = "; ".join(_deletions(follower.objects))
        view.line(f"{left}: goes on in the running system. Ctrl-C again ends it; later: {later}")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SECOND_PRESS_SECONDS):
                await pressed.get()
                await _end(follower, client, view)
        return False
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


def _deletions(objects: list[tuple[ResourceType, Key]]) -> list[str]:
    """The commands that end them."""
    names = " ".join(key.name for resource, key in objects if resource is JOBS)
    others = [f"kubectl delete {resource.qualified} {key.name}" for resource, key in objects if resource is not JOBS]
    return [*([f"vcctl job delete {names}"] if names else []), *others]


async def _first_of(following: asyncio.Future[Any], pressed: asyncio.Queue[None]) -> bool:
    """Whether the jobs ended before a key was pressed."""
    press = asyncio.ensure_future(pressed.get())
    await asyncio.wait({following, press}, return_when=asyncio.FIRST_COMPLETED)
    press.cancel()
    if following.done():
        following.result()
    return following.done()


async def _end(follower: JobFollower, client: Client, view: RunView) -> None:
    for resource, key in follower.objects:
        with contextlib.suppress(NotFound):
            await client.delete(resource, key, {"propagationPolicy": "Background"})
            view.line(f"{resource.kind.lower()} {key.name} was deleted")


@contextlib.asynccontextmanager
async def _host(data_dir: str | None, nodes: NodeOptions, clock: Clock) -> AsyncIterator[tuple[Client, bool]]:
    """The running system, or one of our own for as long as we need it; and whether it is our own."""
    kubeconfig = data_directory(data_dir) / "kubeconfig"
    if kubeconfig.is_file():
        client = Client(HttpTransport(load_endpoint(kubeconfig), clock), agent="volcano-run")
        try:
            if await _answers(client):
                yield client, False
                return
        finally:
            await client.close()
    with tempfile.TemporaryDirectory(prefix="volcano-run-") as folder:
        async with running_system(
            Path(folder), nodes, clock, port=0, ephemeral=True, has_metrics_ports=False
        ) as system:
            yield system.client("volcano-run"), True


async def _answers(client: Client) -> bool:
    try:
        async with asyncio.timeout(5):
            await client.raw(Request("GET", "/readyz"))
    except (ApiError, OSError, TimeoutError):
        return False
    return True
