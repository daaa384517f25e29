"""Plugin: a policy. It answers a question by having a method named after a point of framework.points.

A plugin is made anew for every session with its arguments, opened, asked, notified of what happens, and closed. What
it keeps dies with the session. It reads the session; only Statements change it.

Answers about nodes are kept per `task.shape` (plus `sharing_key`) and asked again only for rows that changed, with a
view of just those rows. So a row's answer must follow from that row's columns, unless `row_local(task)` is False. The
view may also hold *imagined* rows (`nodes.copies`): the node with that many more tasks of this shape. A plugin that
reads only the view's columns needs to do nothing for that. A plugin that keeps columns of its own cuts them with
`nodes.take`, and either accounts for `nodes.copies` or answers `row_local` with False.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from volcano.scheduler.framework.arguments import Arguments
from volcano.scheduler.framework.config import PluginOption
from volcano.scheduler.framework.contract import check_contract
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import Job, Task

if TYPE_CHECKING:
    # A type checker compares every method of a plugin with the Protocol of its point, as an override of it.
    from volcano.scheduler.framework.points import EveryPoint as Contract
else:
    # At run time a plugin has the methods it defines and no others: these are the points it answers.
    Contract = object

C = TypeVar("C", bound=Callable[..., Any])


def default(method: C) -> C:
    """Marks a method that need not be called, because it only answers what holds anyway."""
    method.is_default = True  # type: ignore[attr-defined]
    return method


class Plugin(Contract):
    name: ClassVar[str] = ""
    argument_names: ClassVar[frozenset[str] | None] = None  # for the linter; None: any name is accepted
    argument_prefixes: ClassVar[tuple[str, ...]] = ()  # arguments whose names are made by the user, by how they begin
    keeps_pods_current: ClassVar[bool] = False  # whether `requested` and `pod_count` follow this session's placements

    def __init__(self, option: PluginOption) -> None:
        self.option = option
        self.arguments: Arguments = option.arguments
        self.hierarchy = option.hierarchy

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        check_contract(cls, Plugin)

    def open(self, session: Session) -> None:
        """The session begins: look at it, prepare."""
        self.session = session

    def close(self, session: Session) -> None:
        """All actions have run: leave conditions and gauges in `session.record`."""

    @default
    def row_local(self, task: Task) -> bool:
        """Whether placing any task changes this plugin's node answers for `task` only on the row placed on."""
        return True

    @default
    def sharing_key(self, task: Task) -> Hashable:
        """What, beyond the shape, this plugin's node answers depend on (a queue, some labels …).

        None means nothing, and then holds for every task of the shape throughout the session.
        """
        return None

    @default
    def alike_limit(self, job: Job, task: Task, number: int) -> int:
        """Of `number` waiting tasks of the job with this shape and role, how many may be allocated in one step.

        It stands for the answers to `allocatable`, `bindable` and `pre_filter` about each of them (yes), and to
        `job_ready` after each but the last (no); `on_allocate_alike` is called instead of `on_allocate`. Less than two
        means that the plugin is asked and notified about each task, which is always right.
        """
        return 0

    @default
    def on_allocate_alike(self, tasks: Sequence[Task]) -> None:
        """Tasks of one shape of one job were allocated in one step, because `alike_limit` permits it."""
