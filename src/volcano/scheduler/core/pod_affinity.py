"""Pod affinity and anti-affinity for all nodes at once: of the incoming pod, and of existing pods towards it.

`Neighbourhood` belongs to one session of one plugin. Pods that state affinity of their own are looked at only on
nodes that had such a pod when the session opened, as Kubernetes' snapshot has it; everything else is current.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from volcano.api.core import Namespace
from volcano.scheduler.core.node_table import Mask, NodeTable, Rows
from volcano.scheduler.core.pod_counts import Query
from volcano.scheduler.core.pod_terms import PodTerms, Term, TermBook, rows_with
from volcano.scheduler.model.task import Shape, Task

TermsOf = Callable[[PodTerms], tuple[Term, ...]]


class Neighbourhood:
    """`stated` selects the terms of existing pods that concern incoming pods: required anti-affinity, or preferences"""

    def __init__(
        self,
        table: NodeTable,
        namespaces: Mapping[str, Namespace],
        shapes: Iterable[Shape],
        *,
        stated: TermsOf,
        frozen: TermsOf,
    ) -> None:
        self.book = TermBook()
        self._table, self._namespaces, self._stated = table, namespaces, stated
        self._frozen = rows_with(table, lambda shape: bool(frozen(self.book.of_shape(shape))))
        self.matters = bool(self._frozen.any())  # whether terms of existing pods count at all
        self._stating = [shape for shape in shapes if self.matters and stated(self.book.of_shape(shape))]
        self._foreign_keys = {
            key for shape in self._stating for term in stated(self.book.of_shape(shape)) for key in term.label_keys
        }

    # -- whose answers are shared, and how long they hold --------------------------------------------------------
    def label_keys(self, own: Iterable[Term]) -> set[str]:
        """The labels of a pod that these answers depend on."""
        keys = {key for term in own for key in term.label_keys}
        return keys | self._foreign_keys if self._foreign_keys else keys

    def is_affected(self, task: Task) -> bool:
        """Whether affinity terms of some existing or pending pod select this pod."""
        return any(
            term.means(task, self._namespaces)
            for shape in self._stating
            for term in self._stated(self.book.of_shape(shape))
        )

    # -- what is required ----------------------------------------------------------------------------------------
    def lacks_affinity(self, task: Task, terms: tuple[Term, ...]) -> Mask:
        """Nodes that are not near the pods this one must be near to."""
        lacking, alone = self._table.no_rows(), True
        keyless = self._table.no_rows()
        counted = self._table.pods.count(Query(tuple(term.selection(self._namespaces) for term in terms)))
        for term in terms:
            codes = self._codes(term)
            near = self._per_domain(codes, counted)
            alone = alone and not near.any()
            keyless |= codes < 0
            lacking |= near[codes] == 0
        if alone and all(term.means(task, self._namespaces) for term in terms):
            return keyless  # the first pod of a group with affinity to itself may go anywhere
        return lacking | keyless

    def violates_anti_affinity(self, terms: tuple[Term, ...]) -> Mask:
        """Nodes near pods this one must not be near to."""
        violating = self._table.no_rows()
        for term in terms:
            codes = self._codes(term)
            counted = self._table.pods.count(Query((term.selection(self._namespaces),)))
            violating |= (self._per_domain(codes, counted)[codes] > 0) & (codes >= 0)
        return violating

    def violates_existing_anti_affinity(self, task: Task) -> Mask:
        """Nodes near pods that must not have this one near."""
        refused = self._table.no_rows()
        if not self._stating:
            return refused
        for term, rows in self._existing(task, self._frozen):
            codes = self._codes(term)
            there = np.unique(codes[rows])
            refused |= np.isin(codes, there[there >= 0])
        return refused

    # -- what is preferred ---------------------------------------------------------------------------------------
    def preference(self, task: Task, terms: PodTerms) -> Rows | None:
        """The summed weights of preferences for each node, this pod's and existing pods'; None without any."""
        if not terms.weighted and not self._stating:
            return None
        total = np.zeros(len(self._table), dtype=np.int64)
        for term, sign in ((t, s) for ts, s in ((terms.preferred, 1), (terms.preferred_anti, -1)) for t in ts):
            codes = self._codes(term)
            counted = self._table.pods.count(Query((term.selection(self._namespaces),)))
            total += _cut(self._per_domain(codes, counted), codes) * (term.weight * sign)
        among = None if terms.weighted else self._frozen
        for term, rows in self._existing(task, among):
            codes = self._codes(term)
            there = codes[rows]
            found = np.bincount(there[there >= 0], minlength=int(codes.max(initial=0)) + 2)
            total += _cut(found, codes) * term.weight
        return total

    # -- parts ---------------------------------------------------------------------------------------------------
    def _existing(self, task: Task, among: Mask | None) -> Iterable[tuple[Term, Rows]]:
        """Terms of present pods that mean this one, with the rows of those pods."""
        for shape, tasks in self._table.sociable.items():
            if not self._stated(self.book.of_shape(shape)):
                continue
            if self.book.quotes(shape):
                for other in tasks.values():
                    yield from self._said(self.book.of(other), [other], task, among)
            else:
                yield from self._said(self.book.of_shape(shape), tasks.values(), task, among)

    def _said(
        self, terms: PodTerms, sayers: Iterable[Task], task: Task, among: Mask | None
    ) -> Iterable[tuple[Term, Rows]]:
        """Of these terms those that mean the task, with the rows of the pods that state them."""
        meaning = [term for term in self._stated(terms) if term.means(task, self._namespaces)]
        if not meaning:
            return
        index = self._table.index
        rows = np.array([index[other.node] for other in sayers], dtype=np.intp)
        if among is not None:
            rows = rows[among[rows]]
        for term in meaning:
            yield (_negative(term) if term.weight and term in terms.preferred_anti else term), rows

    def _codes(self, term: Term) -> Rows:
        return self._table.labels.column(term.topology_key).codes

    def _per_domain(self, codes: Rows, counted: Rows) -> Rows:
        """Pods in each domain; one entry more than there are domains, for nodes in none."""
        known = codes >= 0
        size = int(codes.max(initial=0)) + 2
        return np.bincount(codes[known], weights=counted[known], minlength=size).astype(np.int64)


def _cut(per_domain: Rows, codes: Rows) -> Rows:
    """Each node its domain's number; nothing for a node in none (the last entry stands for it)."""
    return per_domain[codes]


def _negative(term: Term) -> Term:
    return Term(term.topology_key, term.selector, term.namespaces, term.namespace_selector, -term.weight)
