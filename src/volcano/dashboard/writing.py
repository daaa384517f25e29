"""Writes: the pages that ask before something is done, and the forms that do it."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from volcano.api.batch import Job
from volcano.api.errors import ApiError
from volcano.api.meta import Key, Resource
from volcano.api.scheduling import Queue
from volcano.dashboard.actions import (
    QUEUES,
    ActionRefused,
    ConfirmPage,
    KnownAction,
    SubmitPage,
    command_line,
    find_action,
    perform,
    queue_command,
    queue_patch,
    submit,
    try_out,
)
from volcano.dashboard.rendering import path_part
from volcano.machinery.client import Client

NAME: Final = r"[-a-zA-Z0-9.]{1,253}"
OF_JOB: Final = re.compile(rf"/jobs/(?P<namespace>{NAME})/(?P<name>{NAME})/do/(?P<action>[a-z]+)")
OF_QUEUE: Final = re.compile(rf"/queues/(?P<name>{NAME})/do/(?P<action>[a-z]+)")
EDIT: Final = re.compile(rf"/queues/(?P<name>{NAME})/edit")


class FormOutcome(msgspec.Struct, frozen=True):
    """Either another place to go to, or a page with its status."""

    place: str = ""
    template: str = ""
    model: Any = None
    title: str = ""
    section: str = ""
    status: int = 200


def question(path: str) -> FormOutcome | None:
    """The page that asks before an action; None where the path names none."""
    found = _named(path)
    return _asking(*found) if found is not None else None


async def write(client: Client, path: str, form: dict[str, str]) -> FormOutcome | None:
    """Does what a form asks for, in the name of the client's user; None where the path names nothing."""
    named = _named(path)
    if named is not None:
        action, key = named
        try:
            await perform(client, action, key)
        except ApiError as error:
            return _asking(action, key, problem=error.message, status=error.status_code)
        return FormOutcome(place=_back(action.kind, key) if action.name != "delete" else "/jobs")
    edited = EDIT.fullmatch(path)
    if edited is not None:
        return await _edit_queue(client, edited["name"], form)
    if path == "/submit":
        return await _submit(client, form)
    return None


def _named(path: str) -> tuple[KnownAction, Key] | None:
    kinds: tuple[tuple[re.Pattern[str], type[Resource]], ...] = ((OF_JOB, Job), (OF_QUEUE, Queue))
    for pattern, kind in kinds:
        match = pattern.fullmatch(path)
        action = find_action(match["action"], kind) if match is not None else None
        if match is not None and action is not None:
            return action, Key(match.groupdict().get("namespace", ""), match["name"])
    return None


def _asking(action: KnownAction, key: Key, problem: str = "", status: int = 200) -> FormOutcome:
    sentence = action.sentence.format(name=key.name)
    back = _back(action.kind, key)
    place = f"{back}/do/{action.name}"
    page = ConfirmPage(action.label, sentence, command_line(action, key), place, back, action.destroys, problem=problem)
    return FormOutcome(
        template="confirm.html", model=page, title=action.label, section=_section(action.kind), status=status
    )


def _back(kind: type[Resource], key: Key) -> str:
    names = (key.namespace, key.name) if kind is Job else (key.name,)
    return "/".join(("/jobs" if kind is Job else "/queues", *map(path_part, names)))


def _section(kind: type[Resource]) -> str:
    return "jobs" if kind is Job else "queues"


async def _edit_queue(client: Client, name: str, form: dict[str, str]) -> FormOutcome:
    """First shows the change and the command, then makes it."""
    back, problem, status, patch = f"/queues/{path_part(name)}", "", 200, dict[str, Any]()
    fields = {field: text for field, text in form.items() if field not in ("secret", "confirmed")}
    try:
        patch = queue_patch(form, await client.get_json(QUEUES, Key("", name)))
        if not patch:
            return FormOutcome(place=back)
        await client.patch(QUEUES, Key("", name), patch, **({} if form.get("confirmed") else {"dryRun": "All"}))
        if form.get("confirmed"):
            return FormOutcome(place=back)
    except ActionRefused as error:
        problem, status = str(error), 422
    except ApiError as error:
        problem, status = error.message, error.status_code
    command = queue_command(name, patch) if patch else ""
    sentence = f"Change queue {name}?"
    page = ConfirmPage("Change", sentence, command, f"{back}/edit", f"{back}/edit", False, fields, problem)
    return FormOutcome(template="confirm.html", model=page, title="Change", section="queues", status=status)


async def _submit(client: Client, form: dict[str, str]) -> FormOutcome:
    text = form.get("text", "")
    if form.get("do") != "submit":
        tried = await try_out(client, text)
        return FormOutcome(template="submit.html", model=tried, title="Submit a job", section="jobs")
    try:
        key = await submit(client, text)
        return FormOutcome(
            place=f"/jobs/{path_part(key.namespace)}/{path_part(key.name)}" if key.namespace else "/jobs"
        )
    except ActionRefused as error:
        page, status = SubmitPage(text, str(error)), 422
    except ApiError as error:
        page, status = SubmitPage(text, error.message), error.status_code
    return FormOutcome(template="submit.html", model=page, title="Submit a job", section="jobs", status=status)
