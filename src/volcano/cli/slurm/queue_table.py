"""Jobs in squeue's columns: `vjobs --me`, `vjobs --format`, and vjobs on a terminal."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from volcano.api.batch import JOB_NAME_KEY
from volcano.api.jobs.dependencies import ARRAY_INDEX_KEY, ARRAY_KEY, ARRAY_LIMIT_KEY
from volcano.api.jobs.estimates import stated_estimate
from volcano.api.meta import JSON
from volcano.api.nearest_words import did_you_mean
from volcano.cli.failures import Failed
from volcano.cli.formats import labels_of, local, parse_time
from volcano.cli.slurm.batch_job import ACCOUNT_KEY, COMMENT_KEY, JOB_ID_KEY, JOB_NAME_LABEL, USER_KEY
from volcano.cli.slurm.job_numbers import shown_number
from volcano.cli.slurm.values import format_array, format_time

STATES: Final = {
    "": ("PD", "PENDING"), "Pending": ("PD", "PENDING"), "Running": ("R", "RUNNING"),
    "Restarting": ("RQ", "REQUEUED"), "Aborting": ("S", "SUSPENDED"), "Aborted": ("S", "SUSPENDED"),
    "Completing": ("CG", "COMPLETING"), "Completed": ("CD", "COMPLETED"), "Terminating": ("CG", "COMPLETING"),
    "Terminated": ("CA", "CANCELLED"), "Failed": ("F", "FAILED"),
}  # fmt: skip
ACTIVE: Final = frozenset(("PENDING", "RUNNING", "REQUEUED", "SUSPENDED", "COMPLETING"))
"""What squeue shows unless it is asked for more."""
DEFAULT_FORMAT: Final = "%.18i %.9P %.20j %.8u %.2t %.10M %.6D %R"
LONG_FORMAT: Final = "%.18i %.9P %.20j %.8u %.9T %.10M %.10l %.6D %R"
FIELD: Final = re.compile(r"%(\.?)(\d{0,3})([A-Za-z])")
UNKNOWN: Final = "N/A"


@dataclass(frozen=True, slots=True)
class QueueRow:
    """One job, or the waiting jobs of an array, with what its columns need."""

    job: JSON
    nodes: tuple[str, ...]
    now: datetime
    number: str = ""
    """Shown in place of the job's own number."""

    @property
    def labels(self) -> Mapping[str, str]:
        return labels_of(self.job)

    @property
    def annotations(self) -> Mapping[str, str]:
        return self.job["metadata"].get("annotations") or {}

    @property
    def phase(self) -> str:
        return phase_of(self.job)

    @property
    def moments(self) -> dict[str, datetime | None]:
        conditions = (self.job.get("status") or {}).get("conditions") or ()
        return {each.get("status", ""): parse_time(each.get("lastTransitionTime")) for each in conditions}

    @property
    def started(self) -> datetime | None:
        return self.moments.get("Running")

    @property
    def ended(self) -> datetime | None:
        is_active = STATES.get(self.phase, STATES[""])[1] in ACTIVE
        return None if is_active else self.moments.get(self.phase)

    @property
    def used(self) -> timedelta:
        return max((self.ended or self.now) - self.started, timedelta(0)) if self.started else timedelta(0)

    @property
    def limit(self) -> timedelta | None:
        return stated_estimate(self.annotations)

    @property
    def replicas(self) -> int:
        return sum(task.get("replicas", 0) for task in self.job["spec"].get("tasks") or ())

    @property
    def reason(self) -> str:
        state = (self.job.get("status") or {}).get("state") or {}
        return str(state.get("reason") or "None") if self.phase in ("", "Pending") else "None"

    def container_amount(self, resource: str) -> str:
        for task in self.job["spec"].get("tasks") or ():
            for container in task["template"]["spec"].get("containers") or ():
                amounts = (container.get("resources") or {}).get("requests") or {}
                return str(amounts.get(resource, UNKNOWN))
        return UNKNOWN


def phase_of(job: JSON) -> str:
    return str(((job.get("status") or {}).get("state") or {}).get("phase", ""))


def _moment(found: datetime | None) -> str:
    return local(found).replace(tzinfo=None).isoformat(timespec="seconds") if found else UNKNOWN


def _node_list_or_reason(row: QueueRow) -> str:
    if row.nodes:
        return compressed(row.nodes)
    return f"({row.reason})" if row.phase in ("", "Pending") else ""


def _left(row: QueueRow) -> str:
    return format_time(row.limit - row.used) if row.limit is not None else "UNLIMITED"


def compressed(nodes: tuple[str, ...] | list[str]) -> str:
    """`node[1-3,5],other`: names that differ only in the number at their end are put together."""
    groups: dict[tuple[str, int], list[int]] = {}
    plain = []
    for name in sorted(set(nodes)):
        match = re.fullmatch(r"(.*?)(\d{1,6})", name)
        if match is None:
            plain.append(name)
        else:
            width = len(match[2]) if match[2].startswith("0") and len(match[2]) > 1 else 0
            groups.setdefault((match[1], width), []).append(int(match[2]))
    for (prefix, width), numbers in groups.items():
        if len(numbers) == 1:
            plain.append(f"{prefix}{numbers[0]:0{width}}")
            continue
        ranges = format_array(numbers)
        padded = re.sub(r"\d+", lambda found, width=width: found[0].zfill(width), ranges)  # type: ignore[misc]
        plain.append(f"{prefix}[{padded}]")
    return ",".join(sorted(plain))


COLUMNS: Final[dict[str, tuple[str, Callable[[QueueRow], str]]]] = {
    "i": ("JOBID", lambda row: row.number or shown_number(row.job)),
    "A": ("JOBID", lambda row: row.labels.get(JOB_ID_KEY) or row.job["metadata"]["name"]),
    "F": ("ARRAY_JOB_ID", lambda row: row.labels.get(ARRAY_KEY) or row.labels.get(JOB_ID_KEY) or UNKNOWN),
    "K": ("ARRAY_TASK_ID", lambda row: row.labels.get(ARRAY_INDEX_KEY) or UNKNOWN),
    "P": ("PARTITION", lambda row: row.job["spec"].get("queue") or "default"),
    "j": ("NAME", lambda row: row.labels.get(JOB_NAME_LABEL) or row.job["metadata"]["name"]),
    "u": ("USER", lambda row: row.labels.get(USER_KEY) or UNKNOWN),
    "t": ("ST", lambda row: STATES.get(row.phase, STATES[""])[0]),
    "T": ("STATE", lambda row: STATES.get(row.phase, STATES[""])[1]),
    "M": ("TIME", lambda row: format_time(row.used)),
    "l": ("TIME_LIMIT", lambda row: format_time(row.limit)),
    "L": ("TIME_LEFT", _left),
    "D": ("NODES", lambda row: str(row.replicas)),
    "C": ("CPUS", lambda row: row.container_amount("cpu")),
    "m": ("MIN_MEMORY", lambda row: row.container_amount("memory")),
    "b": ("TRES_PER_NODE", lambda row: row.container_amount("nvidia.com/gpu")),
    "R": ("NODELIST(REASON)", _node_list_or_reason),
    "N": ("NODELIST", lambda row: compressed(row.nodes)),
    "r": ("REASON", lambda row: row.reason),
    "S": ("START_TIME", lambda row: _moment(row.started)),
    "V": ("SUBMIT_TIME", lambda row: _moment(parse_time(row.job["metadata"].get("creationTimestamp")))),
    "e": ("END_TIME", lambda row: _moment(row.ended)),
    "p": ("PRIORITY", lambda row: row.job["spec"].get("priorityClassName") or UNKNOWN),
    "Q": ("PRIORITY", lambda row: row.job["spec"].get("priorityClassName") or UNKNOWN),
    "a": ("ACCOUNT", lambda row: row.annotations.get(ACCOUNT_KEY) or UNKNOWN),
    "k": ("COMMENT", lambda row: row.annotations.get(COMMENT_KEY) or "(null)"),
    "g": ("GROUP", lambda row: row.job["metadata"].get("namespace", "")),
}
"""Letters of --format, with their headings."""


def table(rows: list[QueueRow], form: str, *, header: bool = True) -> list[str]:
    """Failed with the letters there are, for one that is not known."""
    for _, _, letter in FIELD.findall(form):
        if letter not in COLUMNS:
            raise Failed(f"--format: %{letter} is not known; there are %{' %'.join(sorted(COLUMNS))}")

    def line(value: Callable[[str], str]) -> str:
        def cell(match: re.Match[str]) -> str:
            right, width, text = match[1], int(match[2] or 0), value(match[3])
            if not width:
                return text
            return text[:width].rjust(width) if right else text[:width].ljust(width)

        return FIELD.sub(cell, form).rstrip()

    heading = [line(lambda letter: COLUMNS[letter][0])] if header else []
    return [*heading, *(line(lambda letter, row=row: COLUMNS[letter][1](row)) for row in rows)]  # type: ignore[misc]


def parse_states(text: str) -> frozenset[str]:
    """`PD,running,all` as long names."""
    short = dict(STATES.values())
    known = {*short.values(), "ALL"}
    wanted = {short.get(word.upper(), word.upper()) for word in text.split(",") if word}
    for word in sorted(wanted - known):
        raise Failed(f"--states: {word} is not known{did_you_mean(word, known)}; there are {', '.join(sorted(known))}")
    return frozenset(short.values()) if "ALL" in wanted else frozenset(wanted)


def queue_rows(jobs: list[JSON], pods: list[JSON], now: datetime, *, each_of_array: bool) -> list[QueueRow]:
    """Running jobs one by one; the waiting jobs of an array as one row, as squeue has them."""
    nodes: dict[tuple[str, str], list[str]] = {}
    for pod in pods:
        metadata, node = pod["metadata"], (pod.get("spec") or {}).get("nodeName")
        owner = (metadata.get("annotations") or {}).get(JOB_NAME_KEY, "")
        if node and owner:
            nodes.setdefault((metadata.get("namespace", ""), owner), []).append(node)
    rows, waiting = [], dict[tuple[str, str], list[JSON]]()
    for job in sorted(jobs, key=lambda each: str(each["metadata"].get("creationTimestamp", ""))):
        key = (job["metadata"].get("namespace", ""), labels_of(job).get(ARRAY_KEY, ""))
        if key[1] and phase_of(job) in ("", "Pending") and not each_of_array:
            waiting.setdefault(key, []).append(job)
            continue
        place = (job["metadata"].get("namespace", ""), job["metadata"]["name"])
        rows.append(QueueRow(job, tuple(sorted(set(nodes.get(place, ())))), now))
    for (_, array), members in waiting.items():
        indexes = [int(labels_of(job).get(ARRAY_INDEX_KEY, "0")) for job in members]
        limit = (members[0]["metadata"].get("annotations") or {}).get(ARRAY_LIMIT_KEY, "0")
        number = f"{array}_[{format_array(indexes, int(limit) if limit.isdecimal() else 0)}]"
        rows.insert(0, QueueRow(members[0], (), now, number))
    return rows
