"""The commands of `vcctl reservation`, as values."""

from __future__ import annotations

from typing import Final

from volcano.cli.command_line import ADMINISTRATION, BOOL, CommandSpec, Flag
from volcano.cli.common_flags import CONNECTION, LISTING, ONE, SEVERAL

NAME: Final = Flag("name", "N", help="the name of the reservation; it may also be given as an argument")

RESERVATION: Final = CommandSpec(
    "reservation",
    "Keep nodes or amounts free for a holder in a window of time",
    section=ADMINISTRATION,
    examples=(
        "vcctl reservation create --queue default --from 14:00 --for 2h --cpu 1",
        "vcctl reservation list",
        "vcctl reservation delete course",
    ),
    children=(
        CommandSpec(
            "create",
            "Create a reservation",
            (
                *CONNECTION,
                NAME,
                Flag("queue", "q", help="the queue whose jobs may use it"),
                Flag("namespace", "n", help="the namespace whose jobs may use it"),
                Flag("user", "u", help="the user whose jobs may use it"),
                Flag("maintenance", kind=BOOL, default=False, help="no job may use it"),
                Flag("from", default="now", help="when it begins, such as 14:00, '2026-11-20 14:00' or now"),
                Flag("for", help="how long it lasts, such as 2h or 90m"),
                Flag("every", help="day, week, or a cron schedule such as '0 14 * * 1-5'"),
                Flag("until", help="with --every: no window begins at this time or later"),
                Flag("time-zone", help="the zone of times, such as Europe/Berlin; the local one unless it is set"),
                Flag("nodes", help="the nodes that are kept, such as n1,n2; whole unless amounts are given"),
                Flag("all-nodes", kind=BOOL, default=False, help="every node that there is now"),
                Flag("cpu", help="so much cpu, over all nodes or those given"),
                Flag("memory", help="so much memory, such as 64Gi"),
                Flag("resources", help="other amounts, such as nvidia.com/gpu=8"),
            ),
            "volcano.cli.reservation:create",
            arguments=ONE,
            section=ADMINISTRATION,
            examples=(
                "vcctl reservation create --queue default --from 14:00 --for 2h --cpu 1",
                "vcctl reservation create course --user alice --from 09:00 --for 90m --every week --cpu 1",
                "vcctl reservation create repair --maintenance --all-nodes --from '2099-01-02 08:00' --for 4h",
            ),
        ),
        CommandSpec(
            "list",
            "List reservations with their next windows and what is kept",
            (*CONNECTION, *LISTING),
            "volcano.cli.reservation:list_reservations",
            section=ADMINISTRATION,
            examples=("vcctl reservation list", "vcctl reservation list -o yaml"),
        ),
        CommandSpec(
            "view",
            "Show one reservation, its next windows, and what is kept or still missing",
            (*CONNECTION, NAME),
            "volcano.cli.reservation:view",
            arguments=ONE,
            section=ADMINISTRATION,
            examples=("vcctl reservation view course",),
        ),
        CommandSpec(
            "delete",
            "Delete reservations",
            (*CONNECTION, NAME),
            "volcano.cli.reservation:delete",
            arguments=SEVERAL,
            section=ADMINISTRATION,
            examples=("vcctl reservation delete course",),
        ),
    ),
)
