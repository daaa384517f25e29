"""`vcctl job eta`, and the columns of `vcctl job list --start`, `vjobs --start` and `vcctl job list --priority`."""

from __future__ import annotations

from datetime import datetime
from typing import TypeVar

import msgspec

from volcano.api.errors import ApiError
from volcano.api.jobs.expected_starts import LEARNED, STATED, ExpectedStart, ExpectedStarts
from volcano.api.jobs.priorities import JobPriorities
from volcano.api.meta import JSON
from volcano.cli.command_line import Called, say
from volcano.cli.connection import ApiConnection, connect
from volcano.cli.failures import Failed
from volcano.cli.formats import local
from volcano.cli.output import as_text, form_of
from volcano.cli.resources import JOBS
from volcano.machinery.transport import Request

SCHEDULER = "/api/v1/namespaces/volcano-system/services/volcano-scheduler:metrics/proxy"
PATH = f"{SCHEDULER}/expected-starts"
PRIORITIES_PATH = f"{SCHEDULER}/job-priorities"
UNKNOWN = "-"
A = TypeVar("A")


def eta(called: Called) -> None:
    """`vcctl job eta NAME`."""
    connection, values = connect(called), called.values
    name, namespace = values["name"], values["namespace"]
    if not name:
        raise Failed("job name is mandatory to tell when a particular job starts")
    job = connection.get(JOBS, namespace, name)
    found = asked(connection)
    expected = found.jobs.get(f"{namespace}/{name}")
    form = form_of(called)
    if form in ("json", "yaml"):
        body = {"at": found.at, "job": f"{namespace}/{name}", "expected": expected}
        say(as_text(msgspec.to_builtins(body), form).rstrip("\n"))
        return
    say(described(name, phase_of(job), expected))


def asked(connection: ApiConnection) -> ExpectedStarts:
    """The scheduler's answer about all waiting jobs."""
    return _answer(connection, PATH, ExpectedStarts)


def _answer(connection: ApiConnection, path: str, form: type[A]) -> A:
    try:
        answer = connection.attempt(connection.client.raw(Request("GET", path)))
    except ApiError as error:
        raise Failed(f"the scheduler cannot be asked: {error.message}") from error
    try:
        return msgspec.json.decode(answer.body, type=form)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise Failed(f"the scheduler's answer cannot be read: {error}") from error


def described(name: str, phase: str, expected: ExpectedStart | None) -> str:
    if expected is None:
        return f"{name} does not wait: it is {phase}"
    if expected.start is None:
        return f"{name}: no start is in sight; vcctl job explain {name} says why"
    lines = [f"{name} is expected to start at {moment(expected.start)}"]
    if expected.earliest is not None and expected.latest is not None and expected.earliest != expected.latest:
        lines.append(f"  likely between {moment(expected.earliest)} and {moment(expected.latest)}")
    if expected.after:
        lines.append(f"  {after_words(expected).removeprefix(', ')}")
    rests = {STATED: "the estimate stated for it", LEARNED: f"{expected.runs} past runs"}
    lines.append(f"  its own run time: {rests.get(expected.basis, 'the default estimate')}")
    return "\n".join(lines)


def after_words(expected: ExpectedStart) -> str:
    """`, after default/a, default/b end`, or nothing."""
    after = expected.after
    return f", after {', '.join(after)} end{'s' * (len(after) == 1)}" if after else ""


def with_starts(connection: ApiConnection, jobs: list[JSON], table: str) -> str:
    """The table with one more column; `-` for jobs that do not wait or have no start in sight."""
    found = asked(connection).jobs
    header, *rows = table.splitlines()
    lines = [f"{header}  Start"]
    for job, row in zip(jobs, rows):
        expected = found.get(full_name(job))
        start = expected.start if expected is not None else None
        lines.append(f"{row}  {moment(start) if start is not None else UNKNOWN}")
    return "\n".join(lines)


def with_priorities(connection: ApiConnection, jobs: list[JSON], table: str) -> str:
    """The table with what the place of each waiting job is made of, like `sprio`."""
    found = _answer(connection, PRIORITIES_PATH, JobPriorities).jobs
    header, *rows = table.splitlines()
    lines = [f"{header}  {'Priority':<12}{'Class':<12}Age"]
    for job, row in zip(jobs, rows):
        known = found.get(full_name(job))
        cells = (f"{known.total:g}", str(known.priority), f"{known.aging:g}") if known is not None else (UNKNOWN,) * 3
        lines.append(f"{row}  {cells[0]:<12}{cells[1]:<12}{cells[2]}")
    return "\n".join(lines)


def full_name(job: JSON) -> str:
    return f"{job['metadata'].get('namespace', '')}/{job['metadata']['name']}"


def moment(time: datetime) -> str:
    return local(time).strftime("%Y-%m-%d %H:%M:%S")


def phase_of(job: JSON) -> str:
    return str(((job.get("status") or {}).get("state") or {}).get("phase") or "Pending")
