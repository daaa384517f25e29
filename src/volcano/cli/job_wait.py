"""`vcctl job wait`: until jobs are in a phase, for scripts."""

from __future__ import annotations

import sys

from volcano.api.batch import STOPPED_PHASES
from volcano.api.durations import parse_duration
from volcano.cli.command_line import Called, say
from volcano.cli.connection import ApiConnection, connect
from volcano.cli.named_jobs import for_each_job
from volcano.cli.resources import JOBS
from volcano.machinery.clock import SystemClock, wait_blocking

POLL_SECONDS = 0.5
ENDED = "Ended"
"""Any phase in which a job makes no more progress."""


def wait(called: Called) -> int:
    """0 when every job is in the phase; 1 when one can no longer be, or time is up."""
    connection, values = connect(called), called.values
    clock = SystemClock()
    deadline = clock.monotonic() + parse_duration(values["timeout"]).total_seconds()
    codes: list[int] = []

    def follow(namespace: str, name: str) -> None:
        while True:
            phase = _phase(connection, namespace, name)
            if phase == values["for"] or (values["for"] == ENDED and phase in STOPPED_PHASES):
                say(f"job {name} is {phase}")
                return
            if phase in STOPPED_PHASES or clock.monotonic() > deadline:
                late = "" if phase in STOPPED_PHASES else f" after {values['timeout']}"
                print(f"job {name} is {phase or 'new'}{late}, not {values['for']}", file=sys.stderr)
                codes.append(1)
                return
            wait_blocking(POLL_SECONDS)

    for_each_job(called, connection, "wait for", follow)
    return max(codes, default=0)


def _phase(connection: ApiConnection, namespace: str, name: str) -> str:
    status = connection.get(JOBS, namespace, name).get("status") or {}
    return str((status.get("state") or {}).get("phase", ""))
