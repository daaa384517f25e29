"""`vcctl explain KIND/NAME` and `vcctl job explain NAME`: gathers what the scheduler does not follow, asks it, prints.

The scheduler finds the reason; nothing is derived here. `--apply N` is cli.apply_change's.
"""

from __future__ import annotations

import textwrap
from typing import Final

import msgspec

from volcano.api.errors import ApiError
from volcano.api.jobs.expected_starts import ExpectedStart
from volcano.api.jobs.explanation import TaskNodes
from volcano.api.meta import JSON
from volcano.api.why.answers import LATER, ProposedChange, WhyAnswer, answer_with
from volcano.api.why.reasons import finding
from volcano.api.why.tiers import Tier
from volcano.cli.apply_change import apply_change
from volcano.cli.command_line import Called, say
from volcano.cli.connection import ApiConnection, connect
from volcano.cli.expected_starts import after_words, moment
from volcano.cli.expected_starts import asked as expected_starts
from volcano.cli.explain_facts import gather
from volcano.cli.failures import Failed
from volcano.cli.output import as_text, form_of
from volcano.cli.permitted_changes import with_permitted_changes
from volcano.machinery.kubeconfig import Endpoint
from volcano.machinery.transport import Request

PATH: Final = "/api/v1/namespaces/volcano-system/services/volcano-scheduler:metrics/proxy/explain"
COLUMNS: Final = 100
MAX_CAUSES: Final = 4
WITH_STARTS: Final = ("Job", "PodGroup")
"""Kinds, as the scheduler is asked about them, that have an expected start."""


def explain(called: Called) -> None:
    """`KIND/NAME` or `KIND NAME`; without a kind, a Volcano Job."""
    words = [part for word in called.arguments for part in word.split("/", 1) if part]
    if not words or len(words) > 2:
        raise Failed("name what to explain: vcctl explain KIND/NAME, such as vcjob/gang, pod/web-0 or queue/default")
    kind, name = words if len(words) == 2 else ("vcjob", words[0])
    _answer(called, kind, name)


def explain_job(called: Called) -> None:
    name = called.values["name"]
    if not name:
        raise Failed("job name is mandatory to explain a particular job")
    _answer(called, "vcjob", name)


def _answer(called: Called, kind: str, name: str) -> None:
    connection, values = connect(called), called.values
    question = connection.do(gather(connection.client, kind, values["namespace"], name))
    address = values.get("scheduler") or ""
    found = ask_directly(address, question) if address else ask(connection, question)
    found = connection.do(with_permitted_changes(connection.client, found, question.get("object")))
    form = form_of(called)
    if values.get("apply"):
        apply_change(connection, found, values["apply"], agreed=values["yes"])
        return
    asked = question.get("kind", "")
    expected = expected_start(connection, found, values["namespace"], name) if asked in WITH_STARTS else None
    if form in ("json", "yaml"):
        body = msgspec.to_builtins(found) | ({"expectedStart": msgspec.to_builtins(expected)} if expected else {})
        say(as_text(body, form).rstrip("\n"))
    else:
        say(rendered(found, expected))


def expected_start(connection: ApiConnection, found: WhyAnswer, namespace: str, name: str) -> ExpectedStart | None:
    """Of what waits its turn or for an event; None also when the scheduler cannot be asked or has none in sight."""
    if found.tier not in (Tier.TURN, Tier.EVENT):
        return None
    try:
        expected = expected_starts(connection).jobs.get(f"{namespace}/{name}")
    except Failed:
        return None
    return expected if expected is not None and expected.start is not None else None


def ask(connection: ApiConnection, question: JSON) -> WhyAnswer:
    request = Request("POST", PATH, headers={"content-type": "application/json"}, body=msgspec.json.encode(question))
    try:
        answer = connection.attempt(connection.client.raw(request))
    except ApiError as error:
        found = recorded(question)
        if found is None:
            raise Failed(f"the scheduler cannot be asked: {error.message}") from error
        return found
    return _read(answer.body)


def ask_directly(address: str, question: JSON) -> WhyAnswer:
    """Without the API server's service proxy, where the scheduler listens."""
    connection = ApiConnection(Endpoint(server=address.rstrip("/")))
    request = Request(
        "POST", "/explain", headers={"content-type": "application/json"}, body=msgspec.json.encode(question)
    )
    return _read(connection.do(connection.client.raw(request)).body)


def _read(body: bytes) -> WhyAnswer:
    try:
        return msgspec.json.decode(body, type=WhyAnswer)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise Failed(f"the scheduler's answer cannot be read: {error}") from error


def recorded(question: JSON) -> WhyAnswer | None:
    """What was written about a job, when the scheduler does not answer, as Volcano's own does not; None for nothing."""
    body = question.get("object") or {}
    state = (body.get("status") or {}).get("state")
    if not isinstance(state, dict):
        return None
    said = state.get("message") or state.get("reason") or "nothing"
    about = f"{question['namespace']}/{question['name']}"
    return answer_with(finding("OnlyRecorded", message=str(said)), about, state.get("phase") or "Pending")


# -- for people -------------------------------------------------------------------------------------------------------
def rendered(found: WhyAnswer, expected: ExpectedStart | None = None) -> str:
    """The reason first; then whether waiting helps, the changes that let it run, and what happened."""
    phase = f" is {found.phase}" if found.phase else ""
    lines = textwrap.wrap(f"{found.about}{phase}: {found.text}", COLUMNS, subsequent_indent="  ")
    helps = "" if found.tier in ("nothing to do", "starting") else _whether_waiting_helps(found)
    lines.append(f"  {found.tier}{helps}")
    if expected is not None and expected.start is not None:
        lines.append(f"  expected to start at {moment(expected.start)}{after_words(expected)}")
    lines += [f"  also   {text}" for text in found.also]
    for task in found.tasks if found.tier != "starting" else ():
        lines += _task_lines(task)
    if found.queue is not None and found.queue.position:
        queue = found.queue
        ahead = f"; ahead: {', '.join(queue.ahead[:MAX_CAUSES])}" if queue.ahead else ""
        lines.append(f"  queue  {queue.name} ({queue.state}): {queue.position} of {queue.waiting} waiting{ahead}")
    if found.changes:
        lines.append(f"  {_heading(found.changes)}, each tried by the scheduler:")
        for number, change in enumerate(found.changes, 1):
            by = "" if change.by == "you" else f" (by {change.by})"
            lines += [f"    {number}. {change.sentence}{by}", f"       {change.command}"]
    if found.story:
        lines += ["  what happened:", *(f"    {line}" for line in found.story)]
    return "\n".join(lines)


def _heading(changes: list[ProposedChange]) -> str:
    if changes[0].starts == LATER:
        return "changes after which it waits for room that others hold"
    return "changes that let it run"


def _whether_waiting_helps(found: WhyAnswer) -> str:
    return "; waiting helps" if found.waiting_helps else "; waiting alone does not help"


def _task_lines(task: TaskNodes) -> list[str]:
    lines = [f"  nodes  task {task.task} ({task.pending} of {task.replicas} to place): {task}"]
    last = task.first_empty or task.stages[-1]
    causes = list(last.causes.items())[:MAX_CAUSES]
    if causes:
        lines.append(f"         {', '.join(f'{count} × {cause}' for cause, count in causes)}")
    return lines
