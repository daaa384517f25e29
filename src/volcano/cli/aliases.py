"""vsub, vjobs and vcancel: the same jobs by the words of other batch systems; vsuspend and vresume are cli.job's."""

from __future__ import annotations

import fnmatch
import re
import shlex
import sys
from typing import Final

from volcano.api.meta import JSON
from volcano.cli.command_line import Called, say
from volcano.cli.connection import ApiConnection, connect
from volcano.cli.expected_starts import with_starts
from volcano.cli.failures import Failed
from volcano.cli.formats import NONE_FOUND, labels_of, utc_now
from volcano.cli.job import create_or_try, described_job, is_wanted, job_table
from volcano.cli.job_view import view_job
from volcano.cli.named_jobs import PATTERN, for_each_job
from volcano.cli.resources import JOBS, PODS
from volcano.cli.slurm.batch_job import JOB_NAME_LABEL

OWN_JOB_FLAGS: Final = frozenset(("me", "user", "states", "partition"))
SQUEUE_FLAGS: Final = OWN_JOB_FLAGS | {"jobs", "format", "long", "array", "noheader", "squeue"}
NUMBERED: Final = re.compile(r"\d+(_(\d+|\[[^]]*\]))?")


def submit(called: Called) -> int:
    """vsub."""
    connection, values = connect(called), called.values
    if not values["name"]:
        raise Failed("job name cannot be left blank")
    body = described_job(called)
    try:
        words = shlex.split(values["command"], comments=True)
    except ValueError as error:
        raise Failed(f"invalid command {values['command']!r}: {error}") from error
    if words:
        body["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["command"] = words
    return create_or_try(connection, body, values["namespace"], "schedule" if values["test-only"] else "")


def vjobs(called: Called) -> None:
    """vjobs: one job, squeue's table, or Volcano's list, whose widths come from the unfiltered list."""
    if called.values["name"]:
        view_job(called, conditions=False)
        return
    if SQUEUE_FLAGS & called.given or (sys.stdout.isatty() and not called.values["start"]):
        _squeue(called)
        return
    connection, values = connect(called), called.values
    everywhere = values["all-namespaces"]
    jobs = connection.list(JOBS, "" if everywhere else values["namespace"])
    if not jobs:
        say(NONE_FOUND)
        return
    shown = [job for job in jobs if is_wanted(job, values["scheduler"], "", values["selector"])]
    table = job_table(shown, jobs, everywhere=everywhere)
    say(with_starts(connection, shown, table) if values["start"] else table)


def _squeue(called: Called) -> None:
    from volcano.cli.slurm.queue_table import DEFAULT_FORMAT, LONG_FORMAT, queue_rows, table

    connection, values = connect(called), called.values
    namespace = "" if values["all-namespaces"] else values["namespace"]
    jobs = [
        job
        for job in _chosen(called, connection, namespace)
        if is_wanted(job, values["scheduler"], "", values["selector"])
    ]
    rows = queue_rows(jobs, connection.list(PODS, namespace), utc_now(), each_of_array=values["array"])
    form = values["format"] or (LONG_FORMAT if values["long"] else DEFAULT_FORMAT)
    for line in table(rows, form, header=not values["noheader"]):
        say(line)


def _chosen(called: Called, connection: ApiConnection, namespace: str) -> list[JSON]:
    """The jobs of the namespace that --me, --user, --states, --partition and --jobs leave."""
    from volcano.cli.slurm.batch_job import USER_KEY, label_value
    from volcano.cli.slurm.batch_submit import user_name
    from volcano.cli.slurm.job_numbers import jobs_called
    from volcano.cli.slurm.queue_table import ACTIVE, STATES, parse_states, phase_of

    values = called.values
    jobs = connection.list(JOBS, namespace)
    states = parse_states(values["states"]) if values["states"] else ACTIVE
    users = {label_value(user) for user in values["user"].split(",") if user}
    users |= {label_value(user_name())} if values["me"] else set()
    queues = {queue for queue in values["partition"].split(",") if queue}
    if values.get("jobs"):
        jobs = [job for word in values["jobs"].split(",") if word for job in jobs_called(jobs, word)]
    return [
        job
        for job in jobs
        if STATES.get(phase_of(job), STATES[""])[1] in states
        and (not users or labels_of(job).get(USER_KEY) in users)
        and (not queues or (job["spec"].get("queue") or "default") in queues)
    ]


def cancel(called: Called) -> None:
    """vcancel."""
    connection, values = connect(called), called.values

    def remove(namespace: str, name: str) -> None:
        connection.delete(JOBS, namespace, name)
        say(f"cancel job {name} successfully")

    words = [word for word in (values["name"], *called.arguments) if word]
    if not OWN_JOB_FLAGS & called.given and not _means_scripts(connection, values["namespace"], words):
        for_each_job(called, connection, "cancel", remove)
        return
    chosen = _chosen(called, connection, values["namespace"])
    if words:
        from volcano.cli.slurm.job_numbers import jobs_called

        found = {word: jobs_called(chosen, word) or _matching(chosen, word) for word in words}
        if missing := [word for word, jobs in found.items() if not jobs]:
            raise Failed(f"no active job {', '.join(missing)} in namespace {values['namespace']}")
        chosen = [job for jobs in found.values() for job in jobs]
    if not chosen:
        raise Failed(f"no active job in namespace {values['namespace']} is meant")
    for name in dict.fromkeys(job["metadata"]["name"] for job in chosen):
        remove(values["namespace"], name)


def _means_scripts(connection: ApiConnection, namespace: str, words: list[str]) -> bool:
    """Whether a word is a number, part of an array, or the name of a script that was submitted, and of no job."""
    if any(NUMBERED.fullmatch(word) for word in words):
        return True
    if not words or any(PATTERN & {*word} for word in words):
        return False
    jobs = connection.list(JOBS, namespace)
    names = {job["metadata"]["name"] for job in jobs}
    scripts = {labels_of(job).get(JOB_NAME_LABEL) for job in jobs}
    return any(word in scripts and word not in names for word in words)


def _matching(jobs: list[JSON], pattern: str) -> list[JSON]:
    return [job for job in jobs if fnmatch.fnmatchcase(job["metadata"]["name"], pattern)]
