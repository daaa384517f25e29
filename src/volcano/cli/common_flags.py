"""Flags that commands of several nouns share."""

from __future__ import annotations

from typing import Final

from volcano.cli.command_line import BOOL, ONE_NAME, Flag

CONNECTION: Final = (
    Flag("kubeconfig", "k", help="path of the kubeconfig file; otherwise KUBECONFIG and the usual places"),
    Flag("master", "s", help="address of the API server"),
)
NAMESPACE: Final = Flag("namespace", "n", default="default", help="the namespace of the job")
NAME: Final = Flag("name", "N", help="the name of the job; names may also be given as arguments")
LABELS: Final = Flag("labels", "l", help="select by labels, such as team=a,stage!=test")
EVERYWHERE: Final = Flag("all-namespaces", kind=BOOL, default=False, help="list jobs in all namespaces")
LISTING: Final = (
    Flag("output", "o", help="json, yaml, wide, name, or volcano for its own table also on a terminal"),
    Flag("watch", "w", kind=BOOL, default=False, help="go on showing changes"),
)
START: Final = Flag("start", kind=BOOL, default=False, help="show when waiting jobs are expected to start")
DRY_RUN: Final = Flag("dry-run", help="`schedule`: only say where it would run, or why it would not")
QUEUE_NAME: Final = Flag("name", "n", help="the name of the queue; it may also be given as an argument")
ONE: Final = ONE_NAME
SEVERAL: Final = "[NAME…]"
