"""A tree of dominant shares: queues by their path, jobs as leaves; inner nodes scale their children to the poorest."""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass, field

from volcano.scheduler.model import Queue, Resources
from volcano.scheduler.model.resources import dominant_share


def sign(difference: float) -> int:
    return (difference > 0) - (difference < 0)


@dataclass(slots=True, eq=False)
class Branch:
    weight: float = 1.0
    share: float = 0.0
    saturated: bool = False
    allocated: Resources = field(default_factory=Resources)
    request: Resources | None = None  # of a leaf
    children: dict[str, Branch] = field(default_factory=dict)


class ShareTree:
    def __init__(self, total: Resources) -> None:
        self._total = total
        self._root = Branch()
        self._allocated = Resources()

    def copy(self) -> ShareTree:
        copied = ShareTree(self._total)
        copied._root = copy.deepcopy(self._root)
        copied._allocated = self._allocated.copy()
        return copied

    def put(self, queue: Queue, job: str, held: Resources, request: Resources) -> None:
        """A job's leaf under its queue, new or with what it holds now."""
        children = self._place(queue).children
        known = children.get(job)
        if known is not None:
            self._allocated.subtract(known.allocated)
        children[job] = Branch(allocated=held.copy(), request=request, share=dominant_share(held, self._total))
        self._allocated.add(held)

    def held(self, queue: Queue, job: str) -> Resources:
        leaf = self._place(queue).children.get(job)
        return leaf.allocated.copy() if leaf else Resources()

    def update(self) -> None:
        """Recompute shares from the leaves up."""
        demanding = {name for name in self._total.names if self._allocated[name] < self._total[name]}
        self._refresh(self._root, demanding)

    def compare(self, one: Queue, other: Queue) -> float:
        """Down both paths: the unsaturated one first, then the smaller weighted share."""
        mine, theirs = self._root, self._root
        for my_step, their_step in zip(_path(one), _path(other), strict=False):
            mine, theirs = mine.children[my_step], theirs.children[their_step]
            if mine.saturated != theirs.saturated:
                return 1.0 if mine.saturated else -1.0
            difference = mine.share / mine.weight - theirs.share / theirs.weight
            if difference:
                return difference
        return 0.0

    def _place(self, queue: Queue) -> Branch:
        branch = self._root
        weights = queue.hierarchy_weights.split("/")
        for depth, step in enumerate(_path(queue), start=1):
            if step not in branch.children:
                branch.children[step] = Branch(_weight(weights[depth] if depth < len(weights) else ""))
            branch = branch.children[step]
        return branch

    def _refresh(self, branch: Branch, demanding: set[str]) -> None:
        if branch.request is not None:
            branch.saturated = _is_sated(branch.allocated, branch.request, demanding)
            branch.share = dominant_share(branch.allocated, self._total)
            return
        for child in branch.children.values():
            self._refresh(child, demanding)
        poorest = min([1.0, *(c.share for c in branch.children.values() if c.share and not c.saturated)])
        branch.allocated = Resources()
        for child in branch.children.values():
            if child.share:
                scaled = child.allocated if child.saturated else child.allocated * (poorest / child.share)
                branch.allocated.add(scaled)
        branch.share = dominant_share(branch.allocated, self._total)
        branch.saturated = all(child.saturated for child in branch.children.values())


def _path(queue: Queue) -> list[str]:
    """The steps below the root; a queue that names no path stands directly below it, by no name."""
    return queue.hierarchy.split("/")[1:]


def _weight(text: str) -> float:
    return max(float(text), 1.0) if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", text) else 1.0


def _is_sated(allocated: Resources, request: Resources, demanding: set[str]) -> bool:
    """Has all it asked for of something, or asks for something that is used up."""
    return any(
        (request[name] != 0.0 and allocated[name] >= request[name]) or (name not in demanding and request[name] != 0.0)
        for name in allocated.names
    )
