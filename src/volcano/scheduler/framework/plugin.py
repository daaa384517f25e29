"""Plugin: a policy. It answers a question by having a method named after a point of framework.points.

A plugin is made anew for every session with its arguments, opened, asked, told what happens, and closed. What it
keeps dies with the session. It reads the session; only Statements change it.

The node questions, which take all nodes at once (`nodes` is a core.node_view.NodeView):

    def pre_filter(self, task) -> Refusal | None
        Before any node is looked at; a refusal ends the attempt for this task.
    def node_filter(self, task, nodes) -> Iterable[Cause]
        For each reason the rows refused: Cause(refused=mask over the view, code, reason). Yield nothing for a reason
        nobody gives. A row named in no cause passes. Several causes may name one row; causes on rows an earlier
        plugin refused are dropped. If one of your own codes should end the evaluation of a row (as UNRESOLVABLE does
        among Kubernetes' filters), leave that row out of your later causes yourself.
    def node_score(self, task, nodes) -> Column
        A float per row of the view; all plugins' scores are added in order.
    def batch_node_score(self, task, nodes) -> BatchScore
        The same with a part normalised over the candidates; see framework.answers.BatchScore.

Answers are kept per `task.shape` (plus `sharing_key`) and asked again only for rows that changed, with a view of just
those rows: so a row's answer must follow from that row's columns, unless `row_local(task)` is False. The view may
also hold *imagined* rows (`nodes.copies`): the node with so many more tasks of this shape. Whoever reads only the
view's columns needs to do nothing for that; whoever keeps columns of their own cuts them with `nodes.take`, and either
accounts for `nodes.copies` or answers `row_local` with False.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, ClassVar, Final, TypeVar

from volcano.scheduler.framework.arguments import Arguments
from volcano.scheduler.framework.config import PluginOption
from volcano.scheduler.framework.points import POINTS
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import Task

METHODS: Final = frozenset({"open", "close", "row_local", "sharing_key"})
C = TypeVar("C", bound=Callable[..., Any])


def default(method: C) -> C:
    """Marks what a plugin need not be asked, because it only says what holds anyway."""
    method.is_default = True  # type: ignore[attr-defined]
    return method


class Plugin:
    name: ClassVar[str] = ""
    argument_names: ClassVar[frozenset[str] | None] = None  # for the linter; None: anything goes
    argument_prefixes: ClassVar[tuple[str, ...]] = ()  # arguments whose names are made by the user, by how they begin
    keeps_pods_current: ClassVar[bool] = False  # whether `requested` and `pod_count` follow this session's placements

    def __init__(self, option: PluginOption) -> None:
        self.option = option
        self.arguments: Arguments = option.arguments
        self.hierarchy = option.hierarchy

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name, value in vars(cls).items():
            if callable(value) and not name.startswith("_") and name not in POINTS and name not in METHODS:
                raise TypeError(f"{cls.__name__}.{name} is no extension point; those are {', '.join(sorted(POINTS))}")

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
