"""The tables of `vcctl top` as values: columns, cells with what they are sorted by, and rows with a name that stays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from volcano.api.ages import human_duration
from volcano.api.batch import JOB_NAME_KEY
from volcano.api.core import Node
from volcano.api.decode import Unreadable, decode_object
from volcano.api.meta import JSON
from volcano.api.pods.amounts import Amounts, amounts_of
from volcano.api.pods.stranded import PodShape, in_units, shapes_of, stranded_on
from volcano.api.quantity import Quantity
from volcano.cli.formats import parse_time
from volcano.cli.human_units import human
from volcano.cli.node import GPU_ENDING, node_state
from volcano.cli.top.cluster_picture import COUNTED_PHASES, ClusterPicture, allocatable

ZERO: Final = Quantity(0)
JOBS, QUEUES, NODES = KINDS = ("jobs", "queues", "nodes")
RED, GREEN, YELLOW, CYAN, PLAIN = "31", "32", "33", "36", ""
"""Colours as terminals number them."""
TITLES: Final = {
    JOBS: ("NAME", "NAMESPACE", "QUEUE", "PHASE", "PODS", "AGE", "WAITS FOR"),
    QUEUES: ("NAME", "STATE", "WEIGHT", "PENDING", "INQUEUE", "RUNNING", "CPU", "MEMORY", "GPU"),
    NODES: ("NAME", "STATE", "CPU", "MEMORY", "PODS", "GPU", "STRANDED"),
}
DESCENDING: Final = ("WEIGHT", "PENDING", "INQUEUE", "RUNNING", "CPU", "MEMORY", "GPU", "PODS", "STRANDED")
OF_GPUS: Final = ("GPU", "STRANDED")
"""Columns that are left out where no node has GPUs."""
FULL_FROM, BUSY_FROM = 0.9, 0.6
PHASE_ORDER: Final = {
    "Running": 0, "Restarting": 0, "Completing": 0, "Pending": 1, "Inqueue": 1, "": 1, "Failed": 2, "Aborted": 3,
}  # fmt: skip
PHASE_COLOURS: Final = {
    "Running": GREEN, "Completed": GREEN, "Succeeded": GREEN, "Failed": RED, "Aborted": RED, "Terminated": RED,
    "Pending": YELLOW, "Restarting": YELLOW,
}  # fmt: skip


class Cell(NamedTuple):
    """One value: what is shown, what it is sorted by, its colour, and the share that a bar beside it shows."""

    text: str
    order: Any
    colour: str = PLAIN
    share: float | None = None


class Column(NamedTuple):
    """A heading; `is_descending` when the largest values are wanted first."""

    title: str
    is_descending: bool = False


class SheetRow(NamedTuple):
    """A row; its key is the object's namespace and name, by which a selection finds it again."""

    key: tuple[str, str]
    cells: tuple[Cell, ...]


class Sheet(NamedTuple):
    """A table before it is sorted and drawn."""

    kind: str
    columns: tuple[Column, ...]
    rows: tuple[SheetRow, ...]
    first_sort: str
    """The column by which it is sorted until someone asks for another."""


def sheet(kind: str, picture: ClusterPicture) -> Sheet:
    return {JOBS: jobs_sheet, QUEUES: queues_sheet, NODES: nodes_sheet}[kind](picture)


def ordered(table: Sheet, column: str, *, is_reversed: bool = False) -> list[SheetRow]:
    """Rows by a column; those with equal values by name, whichever way the column goes."""
    titles = [each.title for each in table.columns]
    place = titles.index(column)
    by_name = sorted(table.rows, key=lambda row: row.key)
    descending = table.columns[place].is_descending != is_reversed
    return sorted(by_name, key=lambda row: row.cells[place].order, reverse=descending)


def jobs_sheet(picture: ClusterPicture, *, queue: str = "") -> Sheet:
    rows = [_job_row(job, picture) for job in picture.jobs if not queue or _queue_of(job) == queue]
    return Sheet(JOBS, _columns(TITLES[JOBS]), tuple(rows), "PHASE")


def _job_row(job: JSON, picture: ClusterPicture) -> SheetRow:
    metadata, status = job["metadata"], job.get("status") or {}
    state = status.get("state") or {}
    phase = state.get("phase") or "Pending"
    wanted = sum(task.get("replicas", 0) for task in (job.get("spec") or {}).get("tasks") or ())
    ready = status.get("running", 0) + status.get("succeeded", 0)
    created = parse_time(metadata.get("creationTimestamp"))
    lasted = (picture.at - created) if created else None
    waits = str(state.get("message") or state.get("reason") or "") if phase == "Pending" else ""
    return SheetRow(
        (metadata.get("namespace", ""), metadata["name"]),
        (
            _name(metadata["name"]),
            _name(metadata.get("namespace", "")),
            _name(_queue_of(job)),
            Cell(phase, PHASE_ORDER.get(phase, 4), PHASE_COLOURS.get(phase, PLAIN)),
            Cell(f"{ready}/{wanted}", ready, GREEN, ready / wanted if wanted else 0.0),
            Cell(human_duration(lasted) if lasted else "-", lasted.total_seconds() if lasted else 0.0),
            Cell(waits, waits, YELLOW),
        ),
    )


def _queue_of(job: JSON) -> str:
    return str((job.get("spec") or {}).get("queue") or "default")


def queues_sheet(picture: ClusterPicture) -> Sheet:
    gpus = _gpus(picture.total)
    rows = []
    for queue in picture.queues:
        name, spec, status = queue["metadata"]["name"], queue.get("spec") or {}, queue.get("status") or {}
        state, weight = str(status.get("state") or "-"), int(spec.get("weight") or 1)
        counts = picture.phases_by_queue.get(name) or Counter[str]()
        taken, most = amounts_of(status.get("allocated")), amounts_of(spec.get("capability"))
        cells = [
            _name(name),
            Cell(state, state, GREEN if state == "Open" else RED if state == "Closed" else YELLOW),
            Cell(str(weight), weight),
            *(Cell(str(counts.get(phase, 0)), counts.get(phase, 0)) for phase in COUNTED_PHASES),
            *(_use(each, taken, most.get(each) or picture.total.get(each, ZERO)) for each in ("cpu", "memory")),
        ]
        if gpus:
            cells.append(_uses(gpus, taken, {each: most.get(each) or picture.total[each] for each in gpus}))
        rows.append(SheetRow(("", name), tuple(cells)))
    return Sheet(QUEUES, _columns(TITLES[QUEUES], has_gpus=bool(gpus)), tuple(rows), "NAME")


def nodes_sheet(picture: ClusterPicture) -> Sheet:
    gpus = _gpus(picture.total)
    shapes = shapes_of(picture.pods) if gpus else []
    rows = []
    for node in picture.nodes:
        name, state = node["metadata"]["name"], node_state(node)
        have, taken = allocatable(node), picture.used.get(node["metadata"]["name"], {})
        cells = [
            _name(name),
            Cell(state, state, GREEN if state == "Ready" else RED if state.startswith("NotReady") else YELLOW),
            *(_use(each, taken, have.get(each, ZERO)) for each in ("cpu", "memory")),
            Cell(f"{taken.get('pods', ZERO)}/{have.get('pods', ZERO)}", taken.get("pods", ZERO).value),
        ]
        if gpus:
            cells += [_uses(gpus, taken, have), _stranded(node, gpus, taken, have, shapes)]
        rows.append(SheetRow(("", name), tuple(cells)))
    return Sheet(NODES, _columns(TITLES[NODES], has_gpus=bool(gpus)), tuple(rows), "CPU")


def pods_sheet(pods: Sequence[JSON], picture: ClusterPicture) -> Sheet:
    titles = ("POD", "JOB", "PHASE", "NODE", "AGE")
    rows = []
    for pod in pods:
        metadata, phase = pod["metadata"], (pod.get("status") or {}).get("phase") or "Pending"
        created = parse_time(metadata.get("creationTimestamp"))
        cells = (
            _name(metadata["name"]),
            _name((metadata.get("annotations") or {}).get(JOB_NAME_KEY, "-")),
            Cell(phase, PHASE_ORDER.get(phase, 4), PHASE_COLOURS.get(phase, PLAIN)),
            _name((pod.get("spec") or {}).get("nodeName") or "-"),
            Cell(human_duration(picture.at - created) if created else "-", 0),
        )
        rows.append(SheetRow((metadata.get("namespace", ""), metadata["name"]), cells))
    return Sheet("pods", _columns(titles), tuple(rows), "POD")


def _columns(titles: Sequence[str], *, has_gpus: bool = True) -> tuple[Column, ...]:
    return tuple(Column(title, title in DESCENDING) for title in titles if has_gpus or title not in OF_GPUS)


def _name(text: str) -> Cell:
    return Cell(text, text)


def _gpus(total: Amounts) -> list[str]:
    return [name for name in sorted(total) if name.endswith(GPU_ENDING) and total[name]]


def _use(resource: str, taken: Amounts, whole: Quantity) -> Cell:
    used = taken.get(resource, ZERO)
    share = used.nanos / whole.nanos if whole.nanos else 0.0
    return Cell(f"{human(resource, used)}/{human(resource, whole)}", share, load_colour(share), share)


def _uses(resources: Sequence[str], taken: Amounts, have: Amounts) -> Cell:
    """Several kinds of GPU in one cell, sorted by the fullest."""
    cells = [_use(each, taken, have[each]) for each in resources if have.get(each)]
    if not cells:
        return Cell("-", -1.0)
    fullest = max(cells, key=lambda cell: cell.order)
    return fullest._replace(text=" ".join(cell.text for cell in cells))


def _stranded(node: JSON, resources: Sequence[str], taken: Amounts, have: Amounts, shapes: Sequence[PodShape]) -> Cell:
    """Free GPUs that the pods of this cluster, waiting or not, cannot use: for lack of CPUs, memory or whole GPUs."""
    if not any(have.get(each) for each in resources):
        return Cell("-", -1.0)
    used = in_units(taken)
    idle = {name: amount - used.get(name, 0.0) for name, amount in in_units(have).items()}
    try:
        read = decode_object(Node, node)
    except Unreadable:
        return Cell("-", -1.0)
    count = sum(stranded_on(read, idle, name, shapes) for name in resources)
    return Cell(f"{count:.1f}".removesuffix(".0"), count, YELLOW if count >= 0.05 else PLAIN)


def load_colour(share: float) -> str:
    return RED if share >= FULL_FROM else YELLOW if share >= BUSY_FROM else GREEN
