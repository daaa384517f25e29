"""The commands about the past, as values: `vcctl job history`, `vcctl usage` and `vacct`."""

from __future__ import annotations

from typing import Final

from volcano.cli.command_line import BOOL, CLOSER, INT, CommandSpec, Flag
from volcano.cli.common_flags import CONNECTION, EVERYWHERE, LABELS, NAME, NAMESPACE, ONE, SEVERAL

HISTORY_SERVER: Final = Flag(
    "history-server", help="address of `volcano history` on a cluster; otherwise VOLCANO_HISTORY, or the API server"
)
SINCE: Final = Flag("since", "S", help="from this time on: 2026-01-31, 2026-01-31T12:00, 8h, 2d or today")
UNTIL: Final = Flag("until", "E", help="before this time, written as --since")

SELECTION: Final = (
    Flag("user", "u", help="only jobs that this user submitted"),
    Flag("queue", "q", help="only jobs of this queue"),
    Flag("state", "t", help="only jobs in these states: waiting, running, ended, or phases such as Completed,Failed"),
    Flag("node", "w", help="only jobs of which a pod ran on this node"),
    SINCE,
    UNTIL,
    LABELS,
    Flag("limit", kind=INT, default=0, help="show at most so many jobs"),
)

JOB_HISTORY: Final = CommandSpec(
    "history",
    "Tell what happened to a job, also after it is gone; without a name list past jobs",
    (
        *CONNECTION,
        HISTORY_SERVER,
        NAMESPACE,
        NAME,
        EVERYWHERE,
        Flag("uid", help="this run, where several jobs had the name"),
        *SELECTION,
        Flag("output", "o", help="json; of a list also wide, csv, jsonl"),
    ),
    "volcano.cli.accounting:history",
    arguments=ONE,
    section=CLOSER,
    examples=("vcctl job history", "vcctl job history gang", "vcctl job history --since 8h --state Failed"),
)

USAGE: Final = CommandSpec(
    "usage",
    "Report CPU-, memory- and GPU-hours, waits and efficiency by queue, user, namespace and day",
    (
        *CONNECTION,
        HISTORY_SERVER,
        Flag("by", "b", default="queue", help="group by some of day, queue, user, namespace"),
        Flag("namespace", "n", help="only jobs of this namespace"),
        Flag("queue", "q", help="only jobs of this queue"),
        Flag("user", "u", help="only jobs of this user"),
        Flag("since", "S", default="1d", help="from this time on: 2026-01-31, 2026-01-31T12:00, 8h, 2d or today"),
        UNTIL,
        Flag("zone", help="the time zone in which days begin, such as Europe/Berlin; otherwise this machine's"),
        Flag("output", "o", help="csv or json"),
    ),
    "volcano.cli.usage_report:usage",
    section=CLOSER,
    examples=("vcctl usage", "vcctl usage --by day,user --since 7d -o csv"),
)

VACCT: Final = CommandSpec(
    "vacct",
    "show past jobs, as sacct does: who submitted them, when they ran and how they ended",
    (
        *CONNECTION,
        HISTORY_SERVER,
        Flag("name", "j", help="only jobs of these names; they may also be given as arguments"),
        Flag("namespace", "n", help="only jobs of this namespace; otherwise of all that you may see"),
        Flag("all-namespaces", "a", kind=BOOL, default=False, help="of all namespaces, which is the default"),
        *SELECTION,
        Flag("output", "o", help="json, csv, wide, or jsonl, which volcano simulate reads as a workload"),
    ),
    "volcano.cli.accounting:vacct",
    arguments=SEVERAL,
    examples=("vacct", "vacct -u ada --since 7d --state Failed -o wide", "vacct --since 2d -o jsonl"),
)
