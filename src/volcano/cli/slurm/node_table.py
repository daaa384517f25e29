"""`vinfo`: queues and nodes in sinfo's columns."""

from __future__ import annotations

from typing import Final

from volcano.api.meta import JSON
from volcano.api.pods.amounts import Amounts, amounts_of
from volcano.api.quantity import Quantity
from volcano.api.scheduling import ROOT_QUEUE
from volcano.cli.command_line import Called, say
from volcano.cli.connection import connect
from volcano.cli.formats import NONE_FOUND
from volcano.cli.node import node_state, requested_by_node
from volcano.cli.resources import NODES, PODS, QUEUES
from volcano.cli.slurm.queue_table import compressed

ZERO: Final = Quantity(0)
STATES: Final = ("alloc", "mix", "idle", "drain", "down")
DEFAULT_QUEUE: Final = "default"
MEBIBYTE: Final = 2**20


def info(called: Called) -> None:
    connection, values = connect(called), called.values
    nodes, used = connection.list(NODES), requested_by_node(connection.list(PODS))
    if not nodes:
        say(NONE_FOUND)
        return
    queues = [each for each in connection.list(QUEUES) if each["metadata"]["name"] != ROOT_QUEUE]
    if values["partition"]:
        queues = [each for each in queues if each["metadata"]["name"] in values["partition"].split(",")]
    states = {node["metadata"]["name"]: slurm_state(node, used.get(node["metadata"]["name"], {})) for node in nodes}
    rows = node_rows(nodes, states, used) if values["node"] else partition_rows(queues, states)
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        say(" ".join(f"{cell:<{width}}" for cell, width in zip(row, widths)).rstrip())


def slurm_state(node: JSON, used: Amounts) -> str:
    """alloc: no CPU is free; mix: some are; idle: no pod has requested any."""
    state = node_state(node)
    if state.startswith("NotReady"):
        return "down"
    if "Drained" in state:
        return "drain"
    have, taken = amounts_of((node.get("status") or {}).get("allocatable")), used.get("cpu", ZERO)
    if not taken:
        return "idle"
    return "alloc" if taken >= have.get("cpu", ZERO) else "mix"


def partition_rows(queues: list[JSON], states: dict[str, str]) -> list[list[str]]:
    """One row for each queue and state of nodes; queues share all nodes."""
    rows = [["PARTITION", "AVAIL", "TIMELIMIT", "NODES", "STATE", "NODELIST"]]
    for queue in sorted(queues, key=lambda each: str(each["metadata"]["name"])):
        name = queue["metadata"]["name"]
        is_open = (queue.get("status") or {}).get("state", "Open") in ("", "Open")
        for state in STATES:
            members = [node for node, its in states.items() if its == state]
            if members:
                shown = f"{name}*" if name == DEFAULT_QUEUE else name
                rows.append(
                    [shown, "up" if is_open else "down", "infinite", str(len(members)), state, compressed(members)]
                )
    return rows


def node_rows(nodes: list[JSON], states: dict[str, str], used: dict[str, Amounts]) -> list[list[str]]:
    rows = [["NODELIST", "STATE", "CPUS(A/I/O/T)", "MEMORY", "FREE_MEM", "GRES"]]
    for node in sorted(nodes, key=lambda each: str(each["metadata"]["name"])):
        name = node["metadata"]["name"]
        have, taken = amounts_of((node.get("status") or {}).get("allocatable")), used.get(name, {})
        total, busy = have.get("cpu", ZERO).milli // 1000, -(-taken.get("cpu", ZERO).milli // 1000)
        other = total - busy if states[name] in ("drain", "down") else 0
        idle = 0 if other else max(0, total - busy)
        memory = have.get("memory", ZERO).value
        gpus = [f"gpu:{have[resource]}" for resource in sorted(have) if resource.endswith("/gpu") and have[resource]]
        rows.append([
            name, states[name], f"{busy}/{idle}/{other}/{total}", str(memory // MEBIBYTE),
            str((memory - taken.get("memory", ZERO).value) // MEBIBYTE), ",".join(gpus) or "(null)",
        ])  # fmt: skip
    return rows
