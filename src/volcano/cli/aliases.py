"""vsub, vjobs and vcancel: the same jobs by the words of other batch systems; vsuspend and vresume are cli.job's."""

from __future__ import annotations

import shlex

from volcano.cli.command_line import Called, say
from volcano.cli.connection import connect
from volcano.cli.failures import Failed
from volcano.cli.formats import NONE_FOUND
from volcano.cli.job import create_or_try, described_job, is_wanted, job_table
from volcano.cli.job_view import view_job
from volcano.cli.named_jobs import for_each_job
from volcano.cli.resources import JOBS


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
    """vjobs: one job, or the list, whose widths come from the unfiltered list."""
    if called.values["name"]:
        view_job(called, conditions=False)
        return
    connection, values = connect(called), called.values
    everywhere = values["all-namespaces"]
    jobs = connection.list(JOBS, "" if everywhere else values["namespace"])
    if not jobs:
        say(NONE_FOUND)
        return
    shown = [job for job in jobs if is_wanted(job, values["scheduler"], "", values["selector"])]
    say(job_table(shown, jobs, everywhere=everywhere))


def cancel(called: Called) -> None:
    """vcancel."""
    connection = connect(called)

    def remove(namespace: str, name: str) -> None:
        connection.delete(JOBS, namespace, name)
        say(f"cancel job {name} successfully")

    for_each_job(called, connection, "cancel", remove)
