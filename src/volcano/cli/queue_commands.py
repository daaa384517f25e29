"""The commands of `vcctl queue`, as values."""

from __future__ import annotations

from typing import Final

from volcano.cli.command_line import ADMINISTRATION, BOOL, CLOSER, INT32, CommandSpec, Flag
from volcano.cli.common_flags import CONNECTION, LISTING, ONE, QUEUE_NAME, SEVERAL

AMOUNTS: Final = (
    Flag("parent", help="the queue above it"),
    Flag("capability", help="the most it may have, such as cpu=64,nvidia.com/gpu=8"),
    Flag("deserved", help="what it may take back from others, such as cpu=32"),
    Flag("guarantee", help="what is kept free for it, such as cpu=8"),
    Flag("priority", kind=INT32, default=0, help="queues with a higher priority are served first"),
    Flag(
        "reclaimable", kind=BOOL, default=True, help="others may take back what it borrows; --reclaimable=false: never"
    ),
)

QUEUE: Final = CommandSpec(
    "queue",
    "Create queues, list them, open and close them",
    examples=(
        "vcctl queue list",
        "vcctl queue tree",
        "vcctl queue create research -w 2 --capability cpu=64,nvidia.com/gpu=8",
        "vcctl queue delete research",
    ),
    children=(
        CommandSpec(
            "list",
            "List queues with their weights, states and jobs",
            (*CONNECTION, *LISTING),
            "volcano.cli.queue:list_queues",
            examples=("vcctl queue list", "vcctl queue list -o wide"),
        ),
        CommandSpec(
            "get",
            "Show one queue as a line",
            (*CONNECTION, QUEUE_NAME),
            "volcano.cli.queue:get",
            arguments=ONE,
            examples=("vcctl queue get default",),
        ),
        CommandSpec(
            "view",
            "Show one queue, and when its jobs with reserved room will start",
            (*CONNECTION, QUEUE_NAME),
            "volcano.cli.reserved_starts:view",
            arguments=ONE,
            section=CLOSER,
            examples=("vcctl queue view default",),
        ),
        CommandSpec(
            "tree",
            "Show the hierarchy with what each queue deserves, holds and borrows",
            CONNECTION,
            "volcano.cli.queue_tree:tree",
            section=CLOSER,
            examples=("vcctl queue tree",),
        ),
        CommandSpec(
            "create",
            "Create a queue",
            (
                *CONNECTION,
                Flag("name", "n", default="test", help="the name of the queue; it may also be given as an argument"),
                Flag("weight", "w", default=1, kind=INT32, help="its share among its siblings"),
                Flag("state", "S", default="Open", help="its state, Open or Closed"),
                *AMOUNTS,
            ),
            "volcano.cli.queue:create",
            arguments=ONE,
            section=ADMINISTRATION,
            examples=(
                "vcctl queue create -n my-queue -w 2",
                "vcctl queue create team --capability cpu=64 --guarantee cpu=8 --priority 10",
            ),
        ),
        CommandSpec(
            "update",
            "Change fields of a queue; those that are not given stay",
            (
                *CONNECTION,
                QUEUE_NAME,
                Flag("weight", "w", default=0, kind=INT32, help="its share among its siblings"),
                *AMOUNTS,
            ),
            "volcano.cli.queue:update",
            arguments=ONE,
            section=ADMINISTRATION,
            examples=("vcctl queue update default --weight 3 --capability cpu=32",),
        ),
        CommandSpec(
            "operate",
            "Open or close a queue, or change its weight",
            (
                *CONNECTION,
                QUEUE_NAME,
                Flag("weight", "w", default=0, kind=INT32, help="the new weight, with --action update"),
                Flag("action", "a", help="open, close or update"),
            ),
            "volcano.cli.queue:operate",
            arguments=ONE,
            section=ADMINISTRATION,
            examples=("vcctl queue operate default --action close", "vcctl queue operate default --action open"),
        ),
        CommandSpec(
            "delete",
            "Delete queues",
            (*CONNECTION, QUEUE_NAME),
            "volcano.cli.queue:delete",
            arguments=SEVERAL,
            section=ADMINISTRATION,
            examples=("vcctl queue delete research",),
        ),
    ),
)
