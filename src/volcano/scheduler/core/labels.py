"""Node labels as columns of interned values, so that a selector is answered for all nodes at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from volcano.api.core import NodeSelector, NodeSelectorTerm
from volcano.api.selectors import Requirement, Selector, requirements_from
from volcano.scheduler.model.node import Node

Mask: TypeAlias = npt.NDArray[np.bool_]
Sizes: TypeAlias = npt.NDArray[np.int64]

ABSENT: Final = -1


class LabelColumn:
    """One label over all nodes: `codes[row]` is the place of its value in `values`, or ABSENT."""

    __slots__ = ("codes", "places", "values")

    def __init__(self, found: Sequence[str | None]) -> None:
        self.places: dict[str, int] = {}
        self.codes = np.full(len(found), ABSENT, dtype=np.intp)
        for row, value in enumerate(found):
            if value is not None:
                self.codes[row] = self.places.setdefault(value, len(self.places))
        self.values = list(self.places)

    def matches(self, requirement: Requirement) -> Mask:
        match requirement.operator:
            case "Exists":
                return np.not_equal(self.codes, ABSENT)
            case "DoesNotExist":
                return np.equal(self.codes, ABSENT)
            case "In" | "NotIn":
                wanted = [self.places[value] for value in requirement.values if value in self.places]
                among: Mask = np.equal(self.codes, wanted[0]) if len(wanted) == 1 else np.isin(self.codes, wanted)
                return among if requirement.operator == "In" else ~among
        answers = [requirement.matches({requirement.key: value}) for value in self.values]
        return np.array([*answers, False])[self.codes]


class LabelColumns:
    """All labels, made column by column when first asked for."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = nodes
        self._columns: dict[str, LabelColumn] = {}
        self._names: LabelColumn | None = None
        self._images: dict[str, Sizes | None] = {}
        self._has_images: bool | None = None

    def column(self, key: str) -> LabelColumn:
        found = self._columns.get(key)
        if found is None:
            found = self._columns[key] = LabelColumn([node.labels.get(key) for node in self._nodes])
        return found

    @property
    def names(self) -> LabelColumn:
        """The field metadata.name."""
        if self._names is None:
            self._names = LabelColumn([node.name for node in self._nodes])
        return self._names

    @property
    def has_images(self) -> bool:
        if self._has_images is None:
            self._has_images = any(node.images for node in self._nodes)
        return self._has_images

    def image_sizes(self, name: str) -> Sizes | None:
        """Bytes of an image on each node, ABSENT where it is not; None when no node has it."""
        if name not in self._images:
            sizes = np.array([node.images.get(name, ABSENT) for node in self._nodes], dtype=np.int64)
            self._images[name] = sizes if (sizes != ABSENT).any() else None
        return self._images[name]

    def selected(self, selector: Selector) -> Mask:
        chosen = np.full(len(self._nodes), not selector.never)
        for requirement in selector.requirements:
            chosen &= self.column(requirement.key).matches(requirement)
        return chosen

    def labelled(self, labels: dict[str, str]) -> Mask:
        """Nodes that carry exactly these labels, as a pod's nodeSelector asks."""
        chosen = np.ones(len(self._nodes), dtype=bool)
        for key, value in labels.items():
            chosen &= self.column(key).matches(Requirement(key, "In", (value,)))
        return chosen

    def in_term(self, term: NodeSelectorTerm) -> Mask:
        """Nodes one term selects; an empty term selects none."""
        if not term.match_expressions and not term.match_fields:
            return np.zeros(len(self._nodes), dtype=bool)
        chosen = np.ones(len(self._nodes), dtype=bool)
        for requirement in requirements_from(term.match_expressions):
            chosen &= self.column(requirement.key).matches(requirement)
        for requirement in requirements_from(term.match_fields):
            chosen &= self.names.matches(requirement) if requirement.key == "metadata.name" else False
        return chosen

    def in_any_term(self, selector: NodeSelector) -> Mask:
        chosen = np.zeros(len(self._nodes), dtype=bool)
        for term in selector.node_selector_terms:
            chosen |= self.in_term(term)
        return chosen
