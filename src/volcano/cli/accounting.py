"""`vacct` and `vcctl job history`: jobs that ran, who submitted them, when and how they ended, as sacct shows them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

import msgspec

from volcano.api.history_lines import history_lines
from volcano.api.history_records import JobRecord, JobStory
from volcano.cli.command_line import Called, say
from volcano.cli.failures import Failed
from volcano.cli.formats import NONE_FOUND
from volcano.cli.past import clock_time, csv_text, elapsed, moment, past_connection, present, table

OUTPUTS: Final = ("", "wide", "csv", "json", "jsonl")
MAX_JOBS: Final = 1_000_000
STATES: Final = ("waiting", "running", "ended")
_GIB: Final = 2**30

Column = tuple[str, Callable[[JobRecord, datetime], Any]]
COLUMNS: Final[tuple[Column, ...]] = (
    ("NAME", lambda job, now: job.name),
    ("NAMESPACE", lambda job, now: job.namespace),
    ("USER", lambda job, now: job.user or "-"),
    ("QUEUE", lambda job, now: job.queue or "-"),
    ("STATE", lambda job, now: job.phase or "-"),
    ("PODS", lambda job, now: job.pods),
    ("CPUS", lambda job, now: _number(job.cpu_milli / 1000)),
    ("GPUS", lambda job, now: _number(job.gpu_milli / 1000)),
    ("SUBMIT", lambda job, now: clock_time(job.created)),
    ("START", lambda job, now: clock_time(job.started)),
    ("END", lambda job, now: clock_time(job.ended)),
    ("WAITED", lambda job, now: elapsed(job.waited(now))),
    ("ELAPSED", lambda job, now: elapsed(job.ran(now))),
)
WIDE: Final[tuple[Column, ...]] = (
    *COLUMNS,
    ("MEMORY", lambda job, now: f"{_number(job.memory_bytes / _GIB)}Gi"),
    ("RETRIES", lambda job, now: job.retries),
    ("PRIORITY", lambda job, now: job.priority_class or "-"),
    ("OWNER", lambda job, now: job.owner or "-"),
    ("REASON", lambda job, now: job.reason or "-"),
    ("KIND", lambda job, now: job.kind),
    ("UID", lambda job, now: job.uid),
)


def vacct(called: Called) -> None:
    """The jobs that the flags select, newest first."""
    values, now = called.values, present()
    everywhere = bool(values.get("all-namespaces")) or not values.get("namespace")
    names = [*(each for each in (values.get("name") or "").split(",") if each), *called.arguments]
    asked = {
        "namespace": "" if everywhere else str(values["namespace"]),
        "user": str(values.get("user") or ""),
        "queue": str(values.get("queue") or ""),
        "node": str(values.get("node") or ""),
        "label": str(values.get("labels") or ""),
        "since": moment(str(values.get("since") or ""), now),
        "until": moment(str(values.get("until") or ""), now),
        **asked_states(str(values.get("state") or "")),
    }
    past, limit = past_connection(called), min(int(values.get("limit") or MAX_JOBS), MAX_JOBS)
    if names:
        jobs = [job for name in dict.fromkeys(names) for job in past.jobs(limit, **asked, name=name)]
    else:
        jobs = list(past.jobs(limit, **asked))
    show_jobs(jobs, str(values.get("output") or ""), now)


def show_jobs(jobs: list[JobRecord], form: str, now: datetime) -> None:
    if form not in OUTPUTS:
        raise Failed(f"unable to match a printer for the output format {form!r}, allowed: csv, json, jsonl, wide")
    if form == "json":
        say(msgspec.json.format(msgspec.json.encode(jobs), indent=2).decode())
    elif form == "jsonl":
        sys.stdout.flush()
        for line in history_lines(jobs):
            sys.stdout.buffer.write(line)
    elif form == "csv":
        say(csv_text(job_rows(jobs, WIDE, now)))
    elif jobs:
        say(table(job_rows(jobs, WIDE if form == "wide" else COLUMNS, now)))
    else:
        say(NONE_FOUND)


def job_rows(jobs: list[JobRecord], columns: tuple[Column, ...], now: datetime) -> list[list[Any]]:
    return [[title for title, _ in columns], *([cell(job, now) for _, cell in columns] for job in jobs)]


def asked_states(text: str) -> dict[str, str]:
    """`running`, `ended`, `waiting`, or phases such as Completed,Failed."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    states = [word.lower() for word in words if word.lower() in STATES]
    phases = [word for word in words if word.lower() not in STATES]
    return {"states": ",".join(states), "phases": ",".join(phase[:1].upper() + phase[1:] for phase in phases)}


def history(called: Called) -> None:
    """`vcctl job history [NAME]`: all that is known of the last job of a name; without a name, a list."""
    name = str(called.values.get("name") or "") or (called.arguments[0] if called.arguments else "")
    if not name:
        vacct(called)
        return
    past, namespace = past_connection(called), str(called.values["namespace"])
    uid = str(called.values.get("uid") or "")
    story = past.story(uid) if uid else past.newest(namespace, name)
    if story is None:
        raise Failed(f"the history has no job {name} in namespace {namespace}")
    if called.values.get("output") == "json":
        say(msgspec.json.format(msgspec.json.encode(story), indent=2).decode())
        return
    say(story_text(story, present()))


def story_text(story: JobStory, now: datetime) -> str:
    """One job: facts, phases, pods with their nodes and ends, evictions, gaps."""
    job = story.job
    facts = [
        ["Name:", f"{job.namespace}/{job.name}"],
        ["State:", f"{job.phase or '-'}{f' ({job.reason})' if job.reason else ''}"],
        ["Submitted by:", job.user or "-"],
        ["Queue:", job.queue or "-"],
        ["Requested:", ", ".join(f"{name} {amount}" for name, amount in job.requests.items()) or "-"],
        ["Submitted:", clock_time(job.created)],
        ["Started:", f"{clock_time(job.started)}, after {elapsed(job.waited(now))}"],
        ["Ended:", f"{clock_time(job.ended)}, after {elapsed(job.ran(now))}"],
        ["Object:", f"deleted {clock_time(job.gone)}" if job.gone is not None else "still there"],
        ["UID:", job.uid],
    ]
    if not job.end_is_known:
        facts.append(["Note:", "it vanished while its changes were not recorded; its end is when that was noticed"])
    states = [["AT", "PHASE", "REASON", "MESSAGE"]]
    states += [[clock_time(each.at), each.phase, each.reason or "-", each.message[:100]] for each in story.states]
    pods: list[list[Any]] = [["POD", "ATTEMPT", "NODE", "PHASE", "EXIT", "BOUND", "ENDED", "CPU USED"]]
    pods += [
        [
            pod.name,
            pod.attempt,
            pod.node or "-",
            pod.phase,
            "-" if pod.exit_code is None else pod.exit_code,
            clock_time(pod.bound),
            clock_time(pod.ended),
            f"{pod.used_cpu_milli}m of {pod.cpu_milli}m" if pod.used_cpu_milli is not None else "-",
        ]
        for pod in story.pods
    ]
    parts = [table(facts), "States:\n" + table(states), "Pods:\n" + table(pods)]
    if story.evictions:
        rows = [["AT", "POD", "NODE", "BY", "REASON", "FOR"]]
        rows += [
            [clock_time(each.at), each.pod, each.node, each.by, each.reason, each.preemptor or "-"]
            for each in story.evictions
        ]
        parts.append("Evictions:\n" + table(rows))
    if story.gaps:
        rows = [["FROM", "TO", "KIND", "WHY"]]
        rows += [[clock_time(gap.begin), clock_time(gap.end), gap.kind, gap.why] for gap in story.gaps]
        parts.append("Not recorded:\n" + table(rows))
    return "\n\n".join(parts)


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
