"""`volcano run FILE…`: submit, show what happens, end with the jobs.

With a running system it uses that; without one it starts its own in a temporary place and stops it at the end.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import click

from volcano.api.batch import JOB_NAME_KEY, Job
from volcano.api.core import FINISHED_POD_PHASES, Pod
from volcano.api.errors import ApiError, NotFound
from volcano.api.meta import JSON, Key
from volcano.api.scheme import resource_type
from volcano.app.component import run_until_signalled
from volcano.app.nodes import NodeOptions, node_options
from volcano.app.run_view import View, make_view
from volcano.app.settings import data_directory
from volcano.app.submit import FINISHED, SubmitError, read_manifests, submit
from volcano.app.up_command import running_system
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock, SystemClock
from volcano.machinery.http_transport import HttpTransport
from volcano.machinery.informer import Informer
from volcano.machinery.kubeconfig import load_endpoint
from volcano.machinery.transport import Request
from volcano.machinery.world import Change, Mirror

PODS: Final = resource_type(Pod)
COMPLETED, UNSUCCESSFUL, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130
LONGEST_LINE: Final = 16 * 1024
LAST_WORDS: Final = timedelta(seconds=2)  # for logs still on their way when the job has ended


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
        spectator = Spectator(client, clock, view, jobs, logs=logs)
        try:
            phases = await spectator.watch()
        finally:
            view.close()
        for line in spectator.endings():
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


class Spectator:
    """Follows jobs and their pods to the end, and tells a view."""

    def __init__(self, client: Client, clock: Clock, view: View, jobs: list[Key], *, logs: bool = True) -> None:
        self._client, self._clock, self._view, self._logs = client, clock, view, logs
        self._jobs = dict.fromkeys(jobs, "")
        self._mirror = Mirror(clock.now)
        self._readers: dict[str, asyncio.Task[None]] = {}
        self._all_ended = asyncio.Event()
        self._begun = clock.monotonic()
        self._took: dict[Key, float] = {}

    async def watch(self) -> dict[Key, str]:
        """The phase each job ended in."""
        informers: list[Informer[Any]] = [
            Informer(self._client, self._mirror, self._clock, reader, namespace=namespace)
            for namespace in sorted({key.namespace for key in self._jobs})
            for reader in (Job, Pod)
        ]
        self._mirror.listen(Job, self._job_changed)
        self._mirror.listen(Pod, self._pod_changed)
        following = [asyncio.ensure_future(informer.run()) for informer in informers]
        try:
            await self._all_ended.wait()
            await self._finish_logs()
        finally:
            for task in (*following, *self._readers.values()):
                task.cancel()
            await asyncio.gather(*following, *self._readers.values(), return_exceptions=True)
        return self._jobs

    def endings(self) -> list[str]:
        """How each job ended, in a line."""
        lines = []
        for key, phase in self._jobs.items():
            job = self._mirror.get(Job, key)
            wanted = sum(task.replicas for task in job.spec.tasks) if job is not None else 0
            counted = f": {job.status.succeeded} of {wanted} pods succeeded" if job is not None else ""
            lines.append(f"{key.name} {phase} after {self._took.get(key, 0.0):.1f} s{counted}")
        return lines

    def _job_changed(self, change: Change[Job]) -> None:
        job = change.object
        if job.key not in self._jobs:
            return
        if change.new is None:
            self._jobs[job.key] = self._jobs[job.key] or "Terminated"
            self._view.say(f"job/{job.name} was deleted")
        else:
            self._view.job_changed(job, self._pods_of(job.key))
            if job.status.state.phase in FINISHED:
                self._jobs[job.key] = job.status.state.phase
        if self._jobs[job.key]:
            self._took.setdefault(job.key, self._clock.monotonic() - self._begun)
        if all(self._jobs.values()):
            self._all_ended.set()

    def _pod_changed(self, change: Change[Pod]) -> None:
        pod = change.object
        owner = Key(pod.namespace, pod.annotations.get(JOB_NAME_KEY, ""))
        if owner not in self._jobs:
            return
        if change.new is not None:
            self._view.pod_changed(pod)
            if self._logs and pod.uid not in self._readers and pod.status.phase in ("Running", *FINISHED_POD_PHASES):
                self._readers[pod.uid] = asyncio.ensure_future(self._read_logs(pod))
        job = self._mirror.get(Job, owner)
        if job is not None:
            self._view.job_changed(job, self._pods_of(owner))

    def _pods_of(self, job: Key) -> list[Pod]:
        return self._mirror.where(Pod, "job", str(job))

    async def _read_logs(self, pod: Pod) -> None:
        request = Request("GET", PODS.path(pod.namespace, pod.name, "log"), (("follow", "true"),))
        pending = b""
        try:
            async with self._client.stream(request) as chunks:
                async for chunk in chunks:
                    *lines, pending = (pending + chunk).split(b"\n")
                    for line in lines:
                        self._view.log_line(pod.name, line.decode(errors="replace")[:LONGEST_LINE])
                    pending = pending[-LONGEST_LINE:]
        except (ApiError, OSError) as error:
            if not isinstance(error, NotFound):
                self._view.say(f"the logs of {pod.name} cannot be read: {error}")
        if pending:
            self._view.log_line(pod.name, pending.decode(errors="replace"))

    async def _finish_logs(self) -> None:
        if self._readers:
            await asyncio.wait(self._readers.values(), timeout=LAST_WORDS.total_seconds())
