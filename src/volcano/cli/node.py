"""`vcctl node list`: what each node has, what is allocated and what is free, as sinfo shows it."""

from __future__ import annotations

from volcano.api.core import FINISHED_POD_PHASES
from volcano.api.meta import JSON
from volcano.api.pods.amounts import Amounts, added, amounts_of
from volcano.api.pods.requests import pod_requests, read_resources
from volcano.api.quantity import NANO, Quantity
from volcano.cli.command_line import Called, say
from volcano.cli.connection import connect
from volcano.cli.formats import NONE_FOUND, labels_of
from volcano.cli.human_units import human
from volcano.cli.resources import NODES, PODS

ZERO, ONE = Quantity(0), Quantity(NANO)
HEADERS = ["NAME", "STATE", "CPU FREE/ALL", "MEMORY FREE/ALL", "GPU FREE/ALL", "PODS", "LABELS"]
GPU_ENDING = "/gpu"
SYSTEM_LABELS = ("kubernetes.io/", "k8s.io/")


def list_nodes(called: Called) -> None:
    connection, values = connect(called), called.values
    selector = {"labelSelector": values["labels"]} if values["labels"] else {}
    nodes = connection.list(NODES, **selector)
    if not nodes:
        say(NONE_FOUND)
        return
    used = requested_by_node(connection.list(PODS))
    rows = [HEADERS, *(node_row(node, used.get(node["metadata"]["name"], {})) for node in nodes)]
    widths = [max(len(cell) for cell in column) + 2 for column in zip(*rows)]
    for row in rows:
        say("".join(f"{cell:<{width}}" for cell, width in zip(row, widths)).rstrip())


def requested_by_node(pods: list[JSON]) -> dict[str, Amounts]:
    """What unfinished pods request on each node."""
    requested: dict[str, Amounts] = {}
    for pod in pods:
        spec = pod.get("spec") or {}
        node = spec.get("nodeName")
        if node and (pod.get("status") or {}).get("phase") not in FINISHED_POD_PHASES:
            requested[node] = added(requested.get(node, {}), pod_requests(read_resources(spec)), {"pods": ONE})
    return requested


def node_row(node: JSON, used: Amounts) -> list[str]:
    have = amounts_of((node.get("status") or {}).get("allocatable"))
    gpus = [name for name in sorted(have) if name.endswith(GPU_ENDING)]
    labels = {name: value for name, value in labels_of(node).items() if not any(part in name for part in SYSTEM_LABELS)}
    return [
        node["metadata"]["name"],
        node_state(node),
        *(_free(name, have, used) for name in ("cpu", "memory")),
        " ".join(_free(name, have, used) for name in gpus) or "-",
        f"{used.get('pods', ZERO)}/{have.get('pods', ZERO)}",
        ",".join(f"{name}={value}" for name, value in sorted(labels.items())) or "-",
    ]


def node_state(node: JSON) -> str:
    conditions = (node.get("status") or {}).get("conditions") or ()
    is_ready = any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)
    return ("Ready" if is_ready else "NotReady") + (",Drained" if (node.get("spec") or {}).get("unschedulable") else "")


def _free(name: str, have: Amounts, used: Amounts) -> str:
    whole, taken = have.get(name, ZERO), used.get(name, ZERO)
    return f"{human(name, whole - taken if whole > taken else ZERO)}/{human(name, whole)}"
