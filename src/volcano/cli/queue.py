"""`vcctl queue` and vqueues: create, delete, operate, list, get."""

from __future__ import annotations

from collections import Counter
from typing import Any

from volcano.api.meta import JSON, Key
from volcano.api.scheduling import deserved_amounts
from volcano.cli.bus_commands import ask_for
from volcano.cli.command_line import Called, say
from volcano.cli.connection import connect
from volcano.cli.failures import Failed
from volcano.cli.formats import NONE_FOUND, padded, parse_resource_list
from volcano.cli.output import follow, show
from volcano.cli.resources import POD_GROUPS, QUEUES

PHASES = ("Inqueue", "Pending", "Running", "Unknown", "Completed")
WIDTHS = (25, 8, 8, 8, 8, 8, 8, 8, 8)
OLD_PHASES = PHASES[:4]
OLD_WIDTHS = (25, 8, 8, 8, 8, 8, 8)
ACTIONS = {"open": "OpenQueue", "close": "CloseQueue"}


def create(called: Called) -> None:
    values = called.values
    body = {
        "metadata": {"name": values["name"]},
        "spec": {"weight": values["weight"], **_stated_fields(called)},
        "status": {"state": values["state"]},
    }
    connect(called).create(QUEUES, body)


def update(called: Called) -> None:
    """Only what is given changes."""
    connection, name = connect(called), queue_name(called, "queue name must be specified")
    spec = _stated_fields(called)
    if "weight" in called.given:
        spec["weight"] = called.values["weight"]
    if not spec:
        raise Failed("nothing to change: give --weight, --capability or another field")
    connection.do(connection.client.patch(QUEUES, Key("", name), {"spec": spec}))


def _stated_fields(called: Called) -> JSON:
    """The fields of the spec that flags give; amounts replace those that are there."""
    values, spec = called.values, dict[str, Any]()
    for field in ("parent", "priority", "reclaimable"):
        if field in called.given:
            spec[field] = values[field]
    for field in ("capability", "deserved"):
        if field in called.given:
            spec[field] = parse_resource_list(values[field])
    if "guarantee" in called.given:
        spec["guarantee"] = {"resource": parse_resource_list(values["guarantee"])}
    return spec


def delete(called: Called) -> None:
    connection = connect(called)
    names = [name for name in (called.values["name"], *called.arguments) if name]
    if not names:
        raise Failed("queue name must be specified")
    for name in names:
        connection.delete(QUEUES, "", name)


def operate(called: Called) -> None:
    connection, values = connect(called), called.values
    name, action = queue_name(called, "queue name must be specified"), values["action"]
    if not action:
        raise Failed("action can not be null")
    if action == "update":
        if values["weight"] == 0:
            raise Failed("when update queue, weight must be specified, the value must be greater than 0")
        patch = {"spec": {"weight": values["weight"]}}
        connection.do(connection.client.patch(QUEUES, Key("", name), patch))
    elif action in ACTIONS:
        ask_for(connection, QUEUES, "", name, ACTIONS[action])
    else:
        raise Failed(f"action {action} invalid, valid actions are open, close and update")


def list_queues(called: Called) -> None:
    connection = connect(called)
    queues, revision = connection.list_at(QUEUES)

    def table(shown: list[JSON]) -> str:
        return queue_table(shown, connection.list(POD_GROUPS))

    show(called, QUEUES, queues, table, lambda shown: _wide_table(shown, table(shown)))
    follow(called, connection, QUEUES, "", revision, lambda queue: say(table([queue]).splitlines()[1]))


def _wide_table(queues: list[JSON], table: str) -> str:
    """The table with what each queue holds and may hold."""
    header, *rows = table.splitlines()
    lines = [f"{header}  {'Allocated':<40}{'Deserved':<40}Capability"]
    for queue, row in zip(queues, rows):
        spec, status = queue.get("spec") or {}, queue.get("status") or {}
        deserved = deserved_amounts(spec.get("deserved"), (spec.get("guarantee") or {}).get("resource"))
        amounts = [_amounts(each) for each in (status.get("allocated"), deserved, spec.get("capability"))]
        lines.append(f"{row}   {amounts[0]:<40}{amounts[1]:<40}{amounts[2]}".rstrip())
    return "\n".join(lines)


def _amounts(amounts: JSON | None) -> str:
    return ",".join(f"{name}={amount}" for name, amount in sorted((amounts or {}).items())) or "-"


def get(called: Called) -> None:
    connection = connect(called)
    name = queue_name(called, "name is mandatory to get the particular queue details")
    queue = connection.get(QUEUES, "", name)
    say(queue_table([queue], connection.list(POD_GROUPS)))


def vqueues(called: Called) -> None:
    """vqueues: the counters of the Queue's own status."""
    connection, name = connect(called), called.values["name"]
    queues = [connection.get(QUEUES, "", name)] if name else connection.list(QUEUES)
    if not queues:
        say(NONE_FOUND)
        return
    lines = [padded(("Name", "Weight", "State", *OLD_PHASES), OLD_WIDTHS)]
    for queue in queues:
        status = queue.get("status") or {}
        counts = (status.get(phase.lower(), 0) for phase in OLD_PHASES)
        lines.append(padded((queue["metadata"]["name"], _weight(queue), status.get("state", ""), *counts), OLD_WIDTHS))
    say("\n".join(lines))


def queue_table(queues: list[JSON], groups: list[JSON]) -> str:
    lines = [padded(("Name", "Weight", "State", "Parent", *PHASES), WIDTHS)]
    for queue in queues:
        name = queue["metadata"]["name"]
        mine = (g for g in groups if (g.get("spec") or {}).get("queue") == name)
        counts = Counter((group.get("status") or {}).get("phase", "") for group in mine)
        state = (queue.get("status") or {}).get("state", "")
        parent = (queue.get("spec") or {}).get("parent", "")
        cells = (name, _weight(queue), state, parent, *(counts[phase] for phase in PHASES))
        lines.append(padded(cells, WIDTHS))
    return "\n".join(lines)


def _weight(queue: JSON) -> int:
    return int((queue.get("spec") or {}).get("weight", 0))


def queue_name(called: Called, otherwise: str) -> str:
    if not called.values["name"]:
        raise Failed(otherwise)
    return str(called.values["name"])
