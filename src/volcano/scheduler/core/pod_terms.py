"""Pod affinity terms, parsed: which pods they select, over which node label, with what weight."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from volcano.api.core import Namespace, Pod, PodAffinity, PodAffinityTerm
from volcano.api.selectors import NOTHING, Requirement, Selector, selector_from
from volcano.scheduler.core.node_table import Mask, NodeTable
from volcano.scheduler.core.pod_counts import PodSelection
from volcano.scheduler.model.task import Shape, Task


@dataclass(slots=True, frozen=True)
class Term:
    """Pods of these namespaces with such labels, in the same `topology_key` domain."""

    topology_key: str
    selector: Selector
    namespaces: frozenset[str]
    namespace_selector: Selector = NOTHING
    weight: int = 0

    def means(self, task: Task, namespaces: Mapping[str, Namespace]) -> bool:
        if not self.selector.matches(task.pod.labels):
            return False
        return task.namespace in self.namespaces or self._selects(namespaces.get(task.namespace))

    def _selects(self, namespace: Namespace | None) -> bool:
        return self.namespace_selector.matches(namespace.labels if namespace else {})

    def selection(self, namespaces: Mapping[str, Namespace]) -> PodSelection:
        if self.namespace_selector.never:
            return PodSelection(self.namespaces, self.selector)
        if not self.namespace_selector:
            return PodSelection(None, self.selector)
        selected = {name for name, namespace in namespaces.items() if self._selects(namespace)}
        return PodSelection(self.namespaces | selected, self.selector)

    @property
    def label_keys(self) -> set[str]:
        return {requirement.key for requirement in self.selector.requirements}


@dataclass(slots=True, frozen=True)
class PodTerms:
    """All terms of one pod."""

    affinity: tuple[Term, ...] = ()
    anti_affinity: tuple[Term, ...] = ()
    preferred: tuple[Term, ...] = ()
    preferred_anti: tuple[Term, ...] = ()

    @property
    def required(self) -> tuple[Term, ...]:
        return (*self.affinity, *self.anti_affinity)

    @property
    def weighted(self) -> tuple[Term, ...]:
        return (*self.preferred, *self.preferred_anti)


NO_TERMS = PodTerms()


@dataclass(slots=True)
class TermBook:
    """Terms by shape, read once; those that quote the pod's own labels are read per pod."""

    _by_shape: dict[Shape, PodTerms] = field(default_factory=dict)
    _quoting: dict[Shape, bool] = field(default_factory=dict)

    def of(self, task: Task) -> PodTerms:
        shape = task.shape
        found = self._by_shape.get(shape)
        if found is None:
            affinity = shape.pod.spec.affinity
            if affinity is None or not (affinity.pod_affinity or affinity.pod_anti_affinity):
                found = self._by_shape[shape] = NO_TERMS
                return found
            found = self._by_shape[shape] = pod_terms(shape.pod)
        return pod_terms(task.pod) if found is not NO_TERMS and self.quotes(shape) else found

    def quotes(self, shape: Shape) -> bool:
        """Whether a term of this shape depends on the labels of the pod that states it."""
        if shape not in self._quoting:
            self._quoting[shape] = any(_quotes_labels(term) for term in _all_terms(shape.pod))
        return self._quoting[shape]

    def of_shape(self, shape: Shape) -> PodTerms:
        """Those of any one of them: right up to the labels a term quotes."""
        found = self._by_shape.get(shape)
        if found is None:
            found = self._by_shape[shape] = pod_terms(shape.pod)
        return found


def pod_terms(pod: Pod) -> PodTerms:
    affinity = pod.spec.affinity
    if affinity is None:
        return NO_TERMS
    near, apart = affinity.pod_affinity, affinity.pod_anti_affinity
    return PodTerms(_required(near, pod), _required(apart, pod), _preferred(near, pod), _preferred(apart, pod))


def rows_with(table: NodeTable, concerns: Callable[[Shape], bool]) -> Mask:
    """Nodes that have a pod of such a shape, with affinity, now."""
    mask = table.no_rows()
    for shape, tasks in table.sociable.items():
        if concerns(shape):
            for task in tasks.values():
                mask[table.index[task.node]] = True
    return mask


def _required(affinity: PodAffinity | None, pod: Pod) -> tuple[Term, ...]:
    terms = affinity.required_during_scheduling_ignored_during_execution if affinity else ()
    return tuple(_term(term, pod) for term in terms)


def _preferred(affinity: PodAffinity | None, pod: Pod) -> tuple[Term, ...]:
    terms = affinity.preferred_during_scheduling_ignored_during_execution if affinity else ()
    return tuple(_term(term.pod_affinity_term, pod, term.weight) for term in terms if term.weight)


def _all_terms(pod: Pod) -> Iterable[PodAffinityTerm]:
    affinity = pod.spec.affinity
    for half in (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else ():
        if half is not None:
            yield from half.required_during_scheduling_ignored_during_execution
            for weighted in half.preferred_during_scheduling_ignored_during_execution:
                yield weighted.pod_affinity_term


def _quotes_labels(term: PodAffinityTerm) -> bool:
    return bool(term.match_label_keys or term.mismatch_label_keys)


def _term(term: PodAffinityTerm, pod: Pod, weight: int = 0) -> Term:
    own = frozenset({pod.namespace or "default"})
    implicit = not term.namespaces and term.namespace_selector is None
    return Term(
        topology_key=term.topology_key,
        selector=_quoted(selector_from(term.label_selector), term, pod.labels),
        namespaces=own if implicit else frozenset(term.namespaces),
        namespace_selector=selector_from(term.namespace_selector),
        weight=weight,
    )


def _quoted(selector: Selector, term: PodAffinityTerm, labels: Mapping[str, str]) -> Selector:
    """With matchLabelKeys and mismatchLabelKeys; the API server may have done this already, twice does no harm."""
    if selector.never or not _quotes_labels(term):
        return selector
    same = (Requirement(key, "In", (labels[key],)) for key in term.match_label_keys if key in labels)
    other = (Requirement(key, "NotIn", (labels[key],)) for key in term.mismatch_label_keys if key in labels)
    return Selector((*selector.requirements, *same, *other))
