"""`vcctl explain --apply N`: make one of the proposed changes, after asking."""

from __future__ import annotations

import sys
from typing import Final

from volcano.api.errors import ApiError
from volcano.api.meta import JSON, Key
from volcano.api.scheme import ResourceType, find_resource_type
from volcano.api.why.answers import COMMAND, CREATE, REPLACE, ChangedObject, ProposedChange, WhyAnswer
from volcano.cli.bus_commands import ask_for
from volcano.cli.command_line import say
from volcano.cli.connection import ApiConnection
from volcano.cli.failures import Failed
from volcano.machinery.clock import wait_blocking
from volcano.machinery.patch import json_patch

SERVER_FIELDS: Final = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink")
MAX_LOOKS_FOR_END: Final = 600
POLL_SECONDS: Final = 0.2


def apply_change(connection: ApiConnection, found: WhyAnswer, number: int, *, agreed: bool) -> None:
    if not 1 <= number <= len(found.changes):
        known = f"there are {len(found.changes)}" if found.changes else "there are none"
        raise Failed(f"--apply {number}: no such change, {known}")
    change = found.changes[number - 1]
    say(f"{change.sentence}\n  {change.command}")
    if not agreed and not _agrees():
        say("nothing was changed")
        return
    for target in (change.object, *change.others):
        _apply_to(connection, change, target)
    say("done")


def _agrees() -> bool:
    if not sys.stdin.isatty():
        raise Failed("apply this change? Answer with --yes, since there is no terminal to ask on")
    sys.stdout.write("apply this change? [y/N] ")
    sys.stdout.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _apply_to(connection: ApiConnection, change: ProposedChange, target: ChangedObject) -> None:
    row = _row(target)
    if change.action == CREATE:
        connection.create(row, change.body)
    elif change.action == COMMAND:
        ask_for(connection, row, target.namespace, target.name, str(change.body["action"]))
    elif change.action == REPLACE:
        _replace(connection, row, target, change)
    else:
        key = Key(target.namespace, target.name)
        connection.do(connection.client.patch(row, key, change.patch, kind="json"))


def _replace(connection: ApiConnection, row: ResourceType, target: ChangedObject, change: ProposedChange) -> None:
    """Delete it and create it again, as its fields may not be changed."""
    before = connection.get(row, target.namespace, target.name)
    body: JSON = json_patch(before, change.patch)
    body.pop("status", None)
    body["metadata"] = {name: value for name, value in body["metadata"].items() if name not in SERVER_FIELDS}
    connection.delete(row, target.namespace, target.name)
    _until_gone(connection, row, target)
    connection.create(row, body)


def _until_gone(connection: ApiConnection, row: ResourceType, target: ChangedObject) -> None:
    for _ in range(MAX_LOOKS_FOR_END):
        try:
            connection.attempt(connection.client.get_json(row, Key(target.namespace, target.name)))
        except ApiError as error:
            if error.code == 404:
                return
            raise Failed(error.message) from error
        wait_blocking(POLL_SECONDS)
    raise Failed(f"{target.kind} {target.name} was deleted and is still there; create it again when it is gone")


def _row(target: ChangedObject) -> ResourceType:
    group = target.api_version.rpartition("/")[0]
    row = find_resource_type(group, target.kind)
    if row is None:
        raise Failed(f"{target.kind} is not known here")
    return row
