"""How the answers of several plugins to one point combine.

A rule takes the methods that answer a point, tier by tier in configured order, and returns the function that asks
them. It is called once for each point when a session opens, so what the number of methods decides is decided there
and not in every call. Plugins are called lazily: once the answer is certain, the remaining ones are not called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from volcano.scheduler.core.node_table import Column, Mask
from volcano.scheduler.core.node_view import NodeView
from volcano.scheduler.framework.answers import BatchScores, Cause
from volcano.scheduler.model import Domain, Job, SubJob, Task

Method: TypeAlias = Callable[..., Any]
Tiers: TypeAlias = Sequence[Sequence[Method]]
Rule: TypeAlias = Callable[[Tiers], Method]


def first_difference(tiers: Tiers) -> Method:
    """The first answer that is not zero decides: negative puts the first argument first, positive the second."""
    methods = _flat(tiers)
    if len(methods) == 1:
        return methods[0]

    def ask(*about: Any) -> Any:
        for method in methods:
            if answer := method(*about):
                return answer
        return 0

    return ask


def first_answer(tiers: Tiers) -> Method:
    """The first answer that is not `None` decides."""
    methods = _flat(tiers)
    if len(methods) == 1:
        return methods[0]

    def ask(*about: Any) -> Any:
        for method in methods:
            answer = method(*about)
            if answer is not None:
                return answer
        return None

    return ask


def every(tiers: Tiers) -> Method:
    """All plugins must agree; without any plugin the answer is yes."""
    methods = _flat(tiers)
    if len(methods) == 1:
        return methods[0]

    def ask(*about: Any) -> bool:
        for method in methods:  # noqa: SIM110 (a generator for each question would cost more than the loop)
            if not method(*about):
                return False
        return True

    return ask


def some(tiers: Tiers) -> Method:
    """One yes is enough; without any plugin the answer is no."""
    methods = _flat(tiers)
    if len(methods) == 1:
        return methods[0]

    def ask(*about: Any) -> bool:
        return any(method(*about) for method in methods)

    return ask


def vote(tiers: Tiers) -> Method:
    """A vote: any REJECT refuses; after a tier with a PERMIT the answer is yes; if all abstain it is yes, too."""

    def ask(*about: Any) -> bool:
        for tier in tiers:
            permitted = False
            for method in tier:
                answer = method(*about)
                if answer < 0:
                    return False
                permitted = permitted or answer > 0
            if permitted:
                return True
        return True

    return ask


def first_tier_agrees(tiers: Tiers) -> Method:
    """The first tier with any plugin decides, and all of its plugins must agree; without any the answer is no."""
    deciding = next((tier for tier in tiers if tier), None)

    def ask(*about: Any) -> bool:
        return deciding is not None and all(method(*about) for method in deciding)

    return ask


def agreed_victims(tiers: Tiers) -> Method:
    """The victims that all plugins of a tier accept, in the first one's order; the first tier left with any decides.

    `None` abstains. An empty answer ends its tier, not the search; after an intersection came out empty, the next
    plugin of the tier starts over. Both are how Volcano behaves.
    """

    def ask(*about: Any) -> list[Task]:
        for tier in tiers:
            victims: list[Task] = []
            for method in tier:
                offer = method(*about)
                if offer is None:
                    continue
                if not offer:
                    victims = []
                    break
                if victims:
                    accepted = {task.uid for task in offer}
                    victims = [task for task in victims if task.uid in accepted]
                else:
                    victims = list(offer)
            if victims:
                return victims
        return []

    return ask


def union_of_tier(tiers: Tiers) -> Method:
    """All victims that a tier names, each once; the first tier that names any decides."""

    def ask(*about: Any) -> list[Task]:
        for tier in tiers:
            named = {task.uid: task for method in tier for task in method(*about)}
            if named:
                return list(named.values())
        return []

    return ask


def notify_all(tiers: Tiers) -> Method:
    """All plugins are called; there is no answer."""
    methods = _flat(tiers)
    if len(methods) == 1:
        return methods[0]

    def notify(*about: Any) -> None:
        for method in methods:
            method(*about)

    return notify


def first_objection(tiers: Tiers) -> Method:
    """All plugins are called, even after an objection, since all are called when it is undone; the first one holds."""
    methods = _flat(tiers)
    if len(methods) == 1:
        return methods[0]

    def notify(*about: Any) -> Any:
        objection = None
        for method in methods:
            answer = method(*about)
            objection = objection or answer
        return objection

    return notify


def refusals_in_turn(tiers: Tiers) -> Method:
    """Causes of all plugins in turn; on rows that an earlier plugin refused, those of later plugins do not count."""
    methods = _flat(tiers)

    def ask(task: Task, nodes: NodeView) -> Iterator[tuple[Cause, Mask]]:
        """Every cause, with the rows that no earlier plugin has refused; a plugin's own causes all count."""
        still_open: Mask | None = None  # made when there is a cause: mostly there is none
        for method in methods:
            refused: Mask | None = None
            for cause in method(task, nodes):
                still_open = nodes.all() if still_open is None else still_open
                yield cause, still_open
                refused = cause.refused if refused is None else refused | cause.refused
            if still_open is not None and refused is not None:
                still_open = still_open & ~refused

    return ask


def sum_of_scores(tiers: Tiers) -> Method:
    """The scores of all plugins are added, row by row."""
    methods = _flat(tiers)

    def ask(task: Task, nodes: NodeView) -> Column:
        if not methods:
            return nodes.zeros()
        total: Column = methods[0](task, nodes)
        for method in methods[1:]:
            total = total + method(task, nodes)
        return total if len(methods) > 1 else total.copy()  # a plugin may keep what it answered

    return ask


def sum_of_batch_scores(tiers: Tiers) -> Method:
    """The scores of all plugins are added, part by part."""
    methods = _flat(tiers)

    def ask(task: Task, nodes: NodeView) -> BatchScores:
        scores = [method(task, nodes) for method in methods]
        own = scores[0].own.copy() if scores else nodes.zeros()
        for score in scores[1:]:
            own += score.own
        among = [score.among for score in scores if score.among is not None]
        live = [score.live for score in scores if score.live is not None]
        return BatchScores(own, among, live)

    return ask


def sum_of_domain_scores(tiers: Tiers) -> Method:
    """The scores of all plugins are added; a domain that a plugin does not name gets nothing from it."""
    methods = _flat(tiers)

    def ask(sub_job: SubJob, domains: Sequence[Domain]) -> dict[str, float]:
        totals = dict.fromkeys((domain.name for domain in domains), 0.0)
        for method in methods:
            scores = method(sub_job, domains)
            for name in totals:
                totals[name] += scores.get(name, 0.0)
        return totals

    return ask


def first_plugin(tiers: Tiers) -> Method:
    """The first plugin decides alone; without any plugin only the domain given is tried."""
    methods = _flat(tiers)

    def ask(owner: Job | SubJob, within: Domain, purpose: str) -> list[list[Domain]]:
        return (methods[0](owner, within, purpose) or []) if methods else [[within]]

    return ask


def _flat(tiers: Tiers) -> list[Method]:
    return [method for tier in tiers for method in tier]
