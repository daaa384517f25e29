"""`vcctl job logs`: what the pods of a job printed, and with -f what they go on printing until the job ends."""

from __future__ import annotations

import asyncio
import re
import sys

from volcano.api.batch import JOB_NAME_KEY, TASK_SPEC_KEY, Job
from volcano.api.core import Pod
from volcano.api.durations import parse_duration
from volcano.api.errors import ApiError
from volcano.api.meta import JSON, Key
from volcano.cli.command_line import Called, say
from volcano.cli.connection import ApiConnection, connect
from volcano.cli.failures import Failed
from volcano.cli.live.job_follower import JobFollower
from volcano.cli.live.run_view import prefix_colour
from volcano.cli.resources import JOBS, PODS
from volcano.machinery.client import Client
from volcano.machinery.clock import SystemClock
from volcano.machinery.http_transport import HttpTransport
from volcano.machinery.transport import Request


class LogPrinter:
    """The lines of the chosen pods, each behind its pod's name; other changes of the job are not shown."""

    def __init__(self, called: Called) -> None:
        values = called.values
        self._task, self._pod = values["task"], values["pod"]
        try:
            self._pattern = re.compile(values["grep"])
        except re.error as error:
            raise Failed(f"--grep {values['grep']}: {error}") from error
        self._colours = sys.stdout.isatty()

    def wants(self, pod: str, task: str) -> bool:
        return self._pod in ("", pod) and self._task in ("", task)

    def log_line(self, pod: str, line: str) -> None:
        if self._pattern.search(line):
            say(f"\033[{prefix_colour(pod)}m{pod}\033[0m │ {line}" if self._colours else f"{pod} | {line}")

    def line(self, text: str) -> None:
        print(text, file=sys.stderr)

    def job_changed(self, job: Job, pods: list[Pod]) -> None:
        return None

    def pod_changed(self, pod: Pod, job: Job | None) -> None:
        return None

    def close(self) -> None:
        return None


def logs(called: Called) -> None:
    connection, values, printer = connect(called), called.values, LogPrinter(called)
    namespace, name = values["namespace"], values["name"]
    if not name:
        raise Failed("job name is mandatory to show the logs of a particular job")
    connection.get(JOBS, namespace, name)
    query = _since(values["since"])
    if values["follow"]:
        asyncio.run(_follow(connection, printer, Key(namespace, name), query))
        return
    pods = connection.list(PODS, namespace, labelSelector=f"{JOB_NAME_KEY}={name}")
    chosen = [pod for pod in pods if printer.wants(pod["metadata"]["name"], _task(pod))]
    if not chosen:
        raise Failed(f"job {name} has no such pod; it has {', '.join(_names(pods)) or 'none'}")
    for pod in sorted(chosen, key=lambda each: str(each["metadata"]["name"])):
        _print(connection, printer, namespace, pod["metadata"]["name"], query)


def _print(
    connection: ApiConnection, printer: LogPrinter, namespace: str, pod: str, query: tuple[tuple[str, str], ...]
) -> None:
    request = Request("GET", PODS.path(namespace, pod, "log"), query)
    try:
        body = connection.attempt(connection.client.raw(request)).body
    except ApiError as error:
        printer.line(f"the logs of {pod} cannot be read: {error.message}")
        return
    for line in body.decode(errors="replace").splitlines():
        printer.log_line(pod, line)


async def _follow(connection: ApiConnection, printer: LogPrinter, job: Key, query: tuple[tuple[str, str], ...]) -> None:
    clock = SystemClock()
    client = Client(HttpTransport(connection.endpoint, clock), agent="vcctl")

    def wanted(pod: Pod) -> bool:
        return printer.wants(pod.name, pod.annotations.get(TASK_SPEC_KEY, ""))

    try:
        await JobFollower(client, clock, printer, [job], log_query=query, logs_of=wanted).follow()
    finally:
        await client.close()


def _since(text: str) -> tuple[tuple[str, str], ...]:
    if not text:
        return ()
    return (("sinceSeconds", str(max(1, int(parse_duration(text).total_seconds())))),)


def _task(pod: JSON) -> str:
    return str((pod["metadata"].get("annotations") or {}).get(TASK_SPEC_KEY, ""))


def _names(pods: list[JSON]) -> list[str]:
    return sorted(pod["metadata"]["name"] for pod in pods)
