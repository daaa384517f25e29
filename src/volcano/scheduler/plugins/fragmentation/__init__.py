"""fragmentation: a pod goes where the fewest accelerators become unusable for the pods that are typical here.

"Beware of Fragmentation" (USENIX ATC 2023) calls this fragmentation gradient descent. The score of a node is what the
pod's coming adds to what is stranded there (fragmentation.usable), negative; the card within a node is chosen alike.
"""

from __future__ import annotations

from functools import cached_property
from typing import Final

import numpy as np

from volcano.scheduler.core.cards import Cards
from volcano.scheduler.core.fit import fits_in
from volcano.scheduler.core.node_table import Column, Rows
from volcano.scheduler.core.node_view import NodeView
from volcano.scheduler.framework.config import PluginOption
from volcano.scheduler.framework.plugin import Plugin
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import CPU, Task
from volcano.scheduler.model.resources import is_accelerator
from volcano.scheduler.plugins.fragmentation.mix import TypicalShape, typical_shapes
from volcano.scheduler.plugins.fragmentation.usable import NodeState, Usable

POINTS_PER_PIECE: Final = 100.0
"""What one accelerator that becomes unusable costs, in points of score."""
TIGHTNESS: Final = 0.01
"""Of equal nodes the fuller one is taken: what the emptiest node costs, in accelerators."""


class Fragmentation(Plugin):
    name = "fragmentation"
    argument_names = frozenset({"fragmentation.weight", "fragmentation.resources"})

    def __init__(self, option: PluginOption) -> None:
        super().__init__(option)
        self._weight = option.arguments.integer("fragmentation.weight", 1)
        listed = option.arguments.text("fragmentation.resources", "").split(",")
        self._named = [name.strip() for name in listed if name.strip()]

    def open(self, session: Session) -> None:
        super().open(session)
        session.card_accounts.preference = self._card_loss

    # -- what is measured ----------------------------------------------------------------------------------------------
    @cached_property
    def _measures(self) -> list[Usable]:
        """Made when first asked for: by then all plugins are open, and the accounts of cards known."""
        table, accounts = self.session.table, self.session.card_accounts.accounts
        shapes = typical_shapes(self.session.jobs.values(), accounts)
        found = [Usable(table, shapes, account=account, place=place) for place, account in enumerate(accounts)]
        found += [Usable(table, shapes, resource=name) for name in self._counted(shapes)]
        return found

    def _counted(self, shapes: list[TypicalShape]) -> list[str]:
        """Accelerators that pods ask for by number, and that nodes without cards have: each is measured once."""
        asked = {name for shape in shapes for name, amount in shape.request.amounts.items() if amount > 0.0}
        if self._named:
            return [name for name in self._named if name in asked and name in self.session.table.resources]
        table, accounts = self.session.table, self.session.card_accounts.accounts
        own = {name for account in accounts for name in account.resource_names}
        carded = np.zeros(len(table), dtype=bool)
        for account in accounts:
            carded |= account.cards.counts > 0
        names = [name for name in sorted(asked - own) if is_accelerator(name) and name in table.resources]
        return [name for name in names if (table.allocatable[table.resources[name]][~carded] > 0.0).any()]

    @cached_property
    def _widest(self) -> tuple[float, list[float]]:
        """The cpus of the largest node, and for each measure the pieces of the node that has most."""
        table = self.session.table
        pieces = [
            float(measure.account.cards.counts.max(initial=0))
            if measure.account is not None
            else float(table.allocatable[table.resources[measure.resource]].max(initial=0.0)) / 1000.0
            for measure in self._measures
        ]
        return max(float(table.allocatable[table.resources[CPU]].max(initial=0.0)), 1.0), pieces

    # -- answers -------------------------------------------------------------------------------------------------------
    def node_score(self, task: Task, nodes: NodeView) -> Column:
        if not self._weight or not self._measures:
            return nodes.zeros()
        cpus, pieces = self._widest
        fits = np.flatnonzero(fits_in(task.request, nodes.future_idle))  # only there the score counts
        rows, cost = nodes.rows[fits], nodes.zeros()
        cost[fits] = TIGHTNESS * (nodes.idle[CPU][fits] - task.request[CPU]) / cpus
        for measure, most in zip(self._measures, pieces, strict=True):
            before, after = (state.cut(fits) for state in self._states(measure, task, nodes))
            cost[fits] += measure.stranded(rows, after) - measure.stranded(rows, before)
            cost[fits] += TIGHTNESS * measure.free(after) / max(most, 1.0)
        return np.round(-cost, 6) * (POINTS_PER_PIECE * self._weight)

    def _states(self, measure: Usable, task: Task, nodes: NodeView) -> tuple[NodeState, NodeState]:
        names = [*measure.names, *([measure.resource] if measure.resource else [])]
        idle = {name: nodes.idle[name] for name in names}
        left = {name: column - task.request[name] for name, column in idle.items()}
        if measure.account is None:
            return NodeState(idle, None), NodeState(left, None)
        if measure.account.wants(task):
            choice = measure.account.choice(task, nodes)
            assert choice.before is not None and choice.after is not None
            return NodeState(idle, choice.before), NodeState(left, choice.after)
        cards = measure.account.cards.free_on(nodes.rows)
        return NodeState(idle, cards), NodeState(left, cards)

    def _card_loss(self, cards: Cards, which: Rows, free: Column, taken: Column) -> Column:
        for measure in self._measures:
            if measure.account is not None and measure.account.cards is cards:
                return measure.card_loss(which, free, taken)
        return np.zeros(len(which))
