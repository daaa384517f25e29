"""`vrun -n 4 hostname`, `vrun --pty bash`: a command in pods of its own, its output here, its exit code ours."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from volcano.api.batch import TASK_SPEC_KEY, Job
from volcano.api.core import FINISHED_POD_PHASES, Pod
from volcano.api.errors import ApiError
from volcano.api.meta import JSON, Key
from volcano.cli.command_line import say
from volcano.cli.connection import ApiConnection, connect_to
from volcano.cli.failures import Failed
from volcano.cli.live.job_follower import JobFollower
from volcano.cli.live.run_view import waiting_for
from volcano.cli.pod_streams import stream
from volcano.cli.resources import JOBS, PODS
from volcano.cli.slurm.batch_job import BatchRequest, Submission, batch_job, needed_folders, read_request
from volcano.cli.slurm.batch_submit import submission
from volcano.cli.slurm.job_numbers import take_numbers
from volcano.cli.slurm.options import GivenOption, OptionRefused, of_command_line, settled
from volcano.cli.slurm.pod_script import literal
from volcano.cli.slurm.shared_folders import shared_folders
from volcano.machinery.client import Client
from volcano.machinery.clock import SystemClock, wait_blocking
from volcano.machinery.http_transport import HttpTransport

POLL_SECONDS: Final = 0.2
MAX_POLLS: Final = 100
PROGRAM: Final = r"""
cd "$VSUB_CHDIR" 2>/dev/null ||
  { cd /tmp && echo "vrun: $VSUB_CHDIR cannot be entered in the pod: going to /tmp instead" >&2; } || exit 1
SLURM_PROCID=${VC_TASK_INDEX:-0} SLURM_NODEID=${VC_TASK_INDEX:-0} SLURM_LOCALID=0 SLURMD_NODENAME=$(hostname)
export SLURM_PROCID SLURM_NODEID SLURM_LOCALID SLURMD_NODENAME
unset VSUB_CHDIR
exec "$@"
"""
WAIT_FOR_TERMINAL: Final = r"""
stty -echo; read -r go; stty echo  # nothing is printed before someone is there to see it
"""
GO: Final = b"\n"
END_OF_INPUT: Final = b"\x04"
"""What a terminal sends for the end of the input (Ctrl-D)."""
REFUSED: Final = 1
INTERRUPTED: Final = 130


def run_step(words: Sequence[str]) -> int:
    """The exit code: the largest of the tasks'."""
    try:
        return _run(list(words))
    except (OptionRefused, Failed) as error:
        for line in str(error).splitlines():
            print(f"vrun: error: {line}", file=sys.stderr)
        return REFUSED


def _run(words: list[str]) -> int:
    given, command = of_command_line(words)
    options = {each.name: each for each in given}
    if not command:
        raise OptionRefused("there is no command; for example: vrun -n 4 hostname")
    chosen, notes = settled(given)
    for unusable in ("array", "wrap", "output", "error", "input"):
        if unusable in chosen:
            raise OptionRefused(f"{chosen[unusable].place}: --{unusable} is for vsub; output comes here")
    request = read_request(chosen, Path(command[0]).name)
    for note in (*notes, *request.words):
        print(f"vrun: {note}", file=sys.stderr)
    connection = connect_to(_value(options, "kubeconfig"), _value(options, "master"))
    where = _with_folders(connection, request, submission(chosen), options)
    has_terminal = "pty" in chosen
    number = take_numbers(connection, where.namespace, 1)
    body = step_job(request, command, where, number, has_terminal=has_terminal)
    connection.create(JOBS, body)
    key = Key(where.namespace, body["metadata"]["name"])
    try:
        if has_terminal:
            return _attached(connection, key)
        return asyncio.run(_followed(connection, key, StepView(labelled="label" in chosen, tasks=request.tasks)))
    except KeyboardInterrupt:
        print(f"vrun: job {number} is cancelled", file=sys.stderr)
        return INTERRUPTED
    finally:
        _remove(connection, key)


def _value(options: Mapping[str, GivenOption], name: str) -> str:
    return options[name].value if name in options else ""


def _with_folders(
    connection: ApiConnection, request: BatchRequest, where: Submission, options: Mapping[str, GivenOption]
) -> Submission:
    import dataclasses

    wanted = needed_folders(request, where)[:1]
    shared = shared_folders(connection, wanted, _value(options, "kubeconfig"))
    for folder in shared.hidden:
        print(f"vrun: {folder} in the pod is not this machine's: the system's data is in it", file=sys.stderr)
    return dataclasses.replace(where, folders=shared.mounted, run_as=shared.run_as)


def step_job(
    request: BatchRequest, command: list[str], where: Submission, number: int, *, has_terminal: bool = False
) -> JSON:
    """A gang of one pod for each task."""
    import dataclasses

    single = dataclasses.replace(request, nodes=1, tasks=1)
    body = batch_job(single, "", command, where, number=number)
    name, task = body["metadata"]["name"], body["spec"]["tasks"][0]
    hosts = ",".join(f"{name}-task-{index}" for index in range(request.tasks))
    container = task["template"]["spec"]["containers"][0]
    container["command"][2] = literal((WAIT_FOR_TERMINAL if has_terminal else "") + PROGRAM)
    own = {"SLURM_NTASKS": str(request.tasks), "SLURM_NPROCS": str(request.tasks), "SLURM_STEP_ID": "0"}
    own |= {"SLURM_JOB_NODELIST": hosts, "SLURM_NODELIST": hosts, "SLURM_JOB_NUM_NODES": str(request.tasks)}
    own |= {"SLURM_NNODES": str(request.tasks), "SLURM_TASKS_PER_NODE": f"1(x{request.tasks})"}
    dropped = ("SLURM_PROCID", "SLURM_NODEID", "SLURM_LOCALID", "SLURM_GTIDS")
    kept = [each for each in container["env"] if each["name"] not in (*own, *dropped)]
    container["env"] = [
        each for each in kept if not each["name"].startswith("VSUB_") or each["name"] == "VSUB_CHDIR"
    ] + [{"name": variable, "value": value} for variable, value in own.items()]
    if has_terminal:
        container |= {"stdin": True, "stdinOnce": True, "tty": True}
        container["env"].append({"name": "TERM", "value": os.environ.get("TERM") or "xterm"})
    task |= {"name": "task", "replicas": request.tasks}
    body["spec"] |= {"minAvailable": request.tasks, "plugins": {"env": [], "svc": []}}
    body["spec"]["policies"] = [{"event": "PodEvicted", "action": "TerminateJob"}]
    return body


class StepView:
    """Output as it comes, why the job waits on stderr, and the exit codes of the tasks."""

    def __init__(self, *, labelled: bool, tasks: int) -> None:
        self._labelled, self._tasks, self._said = labelled, tasks, ""
        self.codes: dict[str, int] = {}

    def line(self, text: str) -> None:
        print(f"vrun: {text}", file=sys.stderr)

    def log_line(self, pod: str, line: str) -> None:
        say(f"{pod.rpartition('-')[2]}: {line}" if self._labelled else line)
        sys.stdout.flush()

    def job_changed(self, job: Job, pods: list[Pod]) -> None:
        why = waiting_for(job)
        if why and why != self._said:
            self._said = why
            self.line(f"job {job.name} waits: {why}")

    def pod_changed(self, pod: Pod, job: Job | None) -> None:
        for status in pod.status.container_statuses:
            if status.state.terminated is not None and pod.annotations.get(TASK_SPEC_KEY):
                self.codes[pod.name] = status.state.terminated.exit_code

    def close(self) -> None:
        return None


async def _followed(connection: ApiConnection, key: Key, view: StepView) -> int:
    clock = SystemClock()
    client = Client(HttpTransport(connection.endpoint, clock), agent="vrun")
    try:
        phases = await JobFollower(client, clock, view, [key]).follow()
    finally:
        await client.close()
    worst = max(view.codes.values(), default=0)
    return worst or (0 if phases[key] == "Completed" else 1)


def _attached(connection: ApiConnection, key: Key) -> int:
    """Wait for the pod, then be its terminal."""
    pod, said = f"{key.name}-task-0", ""
    while True:
        job = connection.get(JOBS, key.namespace, key.name)
        state = (job.get("status") or {}).get("state") or {}
        if state.get("phase") in ("Failed", "Terminated", "Aborted"):
            raise Failed(f"job {key.name} is {state['phase']}: {state.get('message') or state.get('reason') or ''}")
        why = str(state.get("message") or "") if state.get("phase") in ("", "Pending") else ""
        if why and why != said:
            said = why
            print(f"vrun: job {key.name} waits: {why}", file=sys.stderr)
        phase = _pod_phase(connection, key.namespace, pod)
        if phase in FINISHED_POD_PHASES:
            say(connection.raw("GET", PODS.path(key.namespace, pod, "log")).decode(errors="replace"), end="")
            return _exit_code(connection, key.namespace, pod)
        if phase == "Running":
            break
        wait_blocking(POLL_SECONDS)
    is_typed = sys.stdin.isatty()
    stream(
        connection, key.namespace, pod, "attach", wants_input=True, has_terminal=is_typed, first=GO,
        last=b"" if is_typed else END_OF_INPUT,
    )  # fmt: skip
    return _exit_code(connection, key.namespace, pod)


def _exit_code(connection: ApiConnection, namespace: str, pod: str) -> int:
    """Of the command that was attached to, which attaching does not tell."""
    for _ in range(MAX_POLLS):
        if _pod_phase(connection, namespace, pod) in ("", *FINISHED_POD_PHASES):
            break
        wait_blocking(POLL_SECONDS)
    try:
        found = connection.attempt(connection.client.get_json(PODS, Key(namespace, pod)))
    except ApiError:
        return 1
    for status in (found.get("status") or {}).get("containerStatuses") or ():
        ended = (status.get("state") or {}).get("terminated")
        if ended is not None:
            return int(ended.get("exitCode", 1))
    return 1


def _pod_phase(connection: ApiConnection, namespace: str, pod: str) -> str:
    try:
        found = connection.attempt(connection.client.get_json(PODS, Key(namespace, pod)))
    except ApiError:
        return ""
    return str((found.get("status") or {}).get("phase", ""))


def _remove(connection: ApiConnection, key: Key) -> None:
    try:
        connection.attempt(connection.client.delete(JOBS, key))
    except ApiError as error:
        print(f"vrun: job {key.name} could not be removed: {error.message}", file=sys.stderr)
