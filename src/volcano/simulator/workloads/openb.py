"""Jobs and nodes from the CSV files of the Alibaba GPU trace (`openb_*`): each line a pod, or a node.

GPUs are told twice. A share of a GPU is a request of milli-units of nvidia.com/gpu, which every policy sums by node.
And nodes have cards of 1000 units of memory, as the volcano-vgpu device plugin registers them, of which pods ask for
that many: a policy with the plugin deviceshare gives each pod its cards. GPU models are a label of nodes that pods
select.
"""

from __future__ import annotations

import csv
import itertools
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from volcano.api import core
from volcano.simulator.clusters import MAX_NODES, MIN_PODS_PER_NODE, InvalidCluster, node
from volcano.simulator.jobs import Role, WorkloadJob
from volcano.simulator.workloads.swf import UnreadableLines, WorkloadTrace

GPU: Final = "nvidia.com/gpu"
CARDS: Final = "volcano.sh/vgpu-number"
CARD_MEMORY: Final = "volcano.sh/vgpu-memory"
CARD_CORES: Final = "volcano.sh/vgpu-cores"
CARD_REGISTER: Final = "volcano.sh/node-vgpu-register"
MAX_PODS_PER_CARD: Final = 100
MODEL_LABEL: Final = "nvidia.com/gpu.product"
POD_COLUMNS: Final = (
    "name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec",
    "creation_time", "deletion_time", "scheduled_time",
)  # fmt: skip
NODE_COLUMNS: Final = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
WHOLE_GPU_MILLI: Final = 1000


class InvalidTrace(ValueError):
    """The file is not of the format; the message says why."""


def read_openb_pods(path: Path, *, first: int = 0, count: int | None = None) -> WorkloadTrace:
    """Each pod a job of its own; it runs as long as it did from when it was scheduled, and that is its estimate."""
    unreadable = UnreadableLines()
    jobs: dict[str, WorkloadJob] = {}
    until = None if count is None else first + count
    with path.open(encoding="utf-8", errors="replace", newline="") as lines:
        readable = _readable_jobs(_rows(lines, path, POD_COLUMNS), unreadable, jobs)
        for job in itertools.islice(readable, until):
            jobs[job.name] = job
    return WorkloadTrace(list(jobs.values())[first:], unreadable)


def read_openb_nodes(path: Path) -> list[core.Node]:
    nodes: dict[str, core.Node] = {}
    with path.open(encoding="utf-8", errors="replace", newline="") as lines:
        for number, row in _rows(lines, path, NODE_COLUMNS):
            try:
                made = _node(row)
            except ValueError as error:
                raise InvalidCluster(f"{path}: line {number}: {error}") from error
            if made.metadata.name in nodes:
                raise InvalidCluster(f"{path}: line {number}: {made.metadata.name} is already there")
            nodes[made.metadata.name] = made
            if len(nodes) > MAX_NODES:
                raise InvalidCluster(f"{path}: more than {MAX_NODES} nodes")
    if not nodes:
        raise InvalidCluster(f"{path}: no nodes")
    return list(nodes.values())


def _rows(lines: Iterator[str], path: Path, columns: tuple[str, ...]) -> Iterator[tuple[int, Mapping[str, str]]]:
    reader = csv.DictReader(lines, restval="")
    missing = [column for column in columns if column not in (reader.fieldnames or ())]
    if missing:
        raise InvalidTrace(f"{path}: the first line lacks the columns {', '.join(missing)}")
    try:
        for row in reader:
            yield reader.line_num, row
    except csv.Error as error:
        raise InvalidTrace(f"{path}: line {reader.line_num}: {error}") from error


def _readable_jobs(
    rows: Iterator[tuple[int, Mapping[str, str]]], unreadable: UnreadableLines, known: Mapping[str, WorkloadJob]
) -> Iterator[WorkloadJob]:
    for number, row in rows:
        try:
            job = _job(row)
        except ValueError as error:
            unreadable.add(number, str(error))
            continue
        if job.name in known:
            unreadable.add(number, f"{job.name} is already there")
            continue
        yield job


def _job(row: Mapping[str, str]) -> WorkloadJob:
    if not row["name"]:
        raise ValueError("name is not given")
    requests = {"cpu": f"{_number(row, 'cpu_milli'):.0f}m", "memory": f"{_number(row, 'memory_mib'):.0f}Mi"}
    gpus, share = _number(row, "num_gpu"), _number(row, "gpu_milli")
    if gpus == 1 and share < WHOLE_GPU_MILLI:
        requests[GPU] = f"{share:.0f}m"
    elif gpus:
        requests[GPU] = f"{gpus:.0f}"
    if gpus:
        requests[CARDS] = f"{gpus:.0f}"
        requests[CARD_MEMORY] = f"{min(share, WHOLE_GPU_MILLI) if gpus == 1 else WHOLE_GPU_MILLI:.0f}"
    submit, end = _number(row, "creation_time"), _number(row, "deletion_time")
    began = _number(row, "scheduled_time") if row["scheduled_time"] else submit
    if end < began:
        raise ValueError("deletion_time is before the pod was scheduled")
    return WorkloadJob(
        name=row["name"],
        submit=submit,
        run_time=end - began,
        roles=(Role("pod", 1, requests, spec=_models(row["gpu_spec"])),),
        estimate=end - began,
    )


def _models(text: str) -> dict[str, object]:
    """The GPU models a pod accepts, separated by bars; none means any."""
    models = [model for model in text.split("|") if model]
    if not models:
        return {}
    if len(models) == 1:
        return {"nodeSelector": {MODEL_LABEL: models[0]}}
    term = {"matchExpressions": [{"key": MODEL_LABEL, "operator": "In", "values": models}]}
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    }


def _node(row: Mapping[str, str]) -> core.Node:
    if not row["sn"]:
        raise ValueError("sn is not given")
    cpus = _number(row, "cpu_milli") / 1000.0
    has = {
        "cpu": f"{cpus * 1000.0:.0f}m",
        "memory": f"{_number(row, 'memory_mib'):.0f}Mi",
        "pods": str(max(MIN_PODS_PER_NODE, math.ceil(cpus))),
    }
    made = {}
    if gpus := int(_number(row, "gpu")):
        has[GPU] = f"{gpus}"
        has[CARDS], has[CARD_MEMORY] = f"{gpus * MAX_PODS_PER_CARD}", f"{gpus * WHOLE_GPU_MILLI}"
        has[CARD_CORES] = f"{gpus * 100}"
        cards = (
            f"{row['sn']}-{card},{MAX_PODS_PER_CARD},{WHOLE_GPU_MILLI},NVIDIA-{row['model']},true,hami-core"
            for card in range(gpus)
        )
        made[CARD_REGISTER] = ":".join(cards) + ":"
    return node(row["sn"], has, {MODEL_LABEL: row["model"]} if row["model"] else None, made)


def _number(row: Mapping[str, str], column: str) -> float:
    try:
        number = float(row[column])
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or number < 0.0:
        raise ValueError(f"{column} is not a number of at least 0: {row[column][:40]!r}")
    return number
