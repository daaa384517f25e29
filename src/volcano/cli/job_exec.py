"""`vcctl job exec`, `attach` and `shell`: a command, the main process or a shell of one pod of a job."""

from __future__ import annotations

import sys

from volcano.api.batch import JOB_NAME_KEY, TASK_SPEC_KEY
from volcano.api.meta import JSON
from volcano.api.nearest_words import did_you_mean
from volcano.cli.command_line import Called
from volcano.cli.connection import ApiConnection, connect
from volcano.cli.failures import Failed
from volcano.cli.pod_streams import stream
from volcano.cli.resources import JOBS, PODS

SHELL = ("/bin/sh", "-c", "command -v bash >/dev/null && exec bash || exec sh")


def exec_in_job(called: Called) -> int:
    name, *command = called.arguments or ("",)
    if not name or not command:
        raise Failed("the job and the command are needed: vcctl job exec NAME -- COMMAND")
    return _stream(called, name, "exec", tuple(command), wants_input=called.values["stdin"])


def shell(called: Called) -> int:
    name = called.arguments[0] if called.arguments else ""
    return _stream(called, name, "exec", SHELL, wants_input=True, prefers_terminal=True)


def attach(called: Called) -> int:
    name = called.arguments[0] if called.arguments else ""
    return _stream(called, name, "attach", (), wants_input=called.values["stdin"])


def _stream(
    called: Called, job: str, verb: str, command: tuple[str, ...], *, wants_input: bool, prefers_terminal: bool = False
) -> int:
    connection, values = connect(called), called.values
    pod = chosen_pod(connection, values["namespace"], job, task=values["task"], pod=values["pod"])
    has_terminal = bool(values.get("tty") or prefers_terminal) and sys.stdin.isatty()
    return stream(
        connection,
        values["namespace"],
        pod["metadata"]["name"],
        verb,
        container=values["container"],
        command=command,
        wants_input=wants_input,
        has_terminal=has_terminal,
    )


def chosen_pod(connection: ApiConnection, namespace: str, job: str, *, task: str = "", pod: str = "") -> JSON:
    """The named pod, or the first running one of the job or of its task; Failed with what there is."""
    if not job:
        raise Failed("job name is mandatory")
    connection.get(JOBS, namespace, job)
    pods = connection.list(PODS, namespace, labelSelector=f"{JOB_NAME_KEY}={job}")
    names = sorted(each["metadata"]["name"] for each in pods)
    chosen = [each for each in pods if pod in ("", each["metadata"]["name"]) and task in ("", _task(each))]
    if not chosen:
        likely = did_you_mean(pod, names) if pod else ""
        raise Failed(f"job {job} has no such pod{likely}; it has {', '.join(names) or 'none'}")
    running = [each for each in chosen if (each.get("status") or {}).get("phase") == "Running"]
    if not running:
        phases = ", ".join(f"{each['metadata']['name']} {(each.get('status') or {}).get('phase')}" for each in chosen)
        raise Failed(f"no pod of job {job} runs: {phases}")
    return min(running, key=lambda each: str(each["metadata"]["name"]))


def _task(pod: JSON) -> str:
    return str((pod["metadata"].get("annotations") or {}).get(TASK_SPEC_KEY, ""))
