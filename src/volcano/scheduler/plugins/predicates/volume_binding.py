"""Volume binding: nodes from which a pod's volumes can be reached, and which volume an unbound claim would get.

What a placement of this session chose is assumed, so that two tasks do not count on the same volume.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from volcano.api.core import NodeSelector, NodeSelectorTerm, PersistentVolume, PersistentVolumeClaim, StorageClass
from volcano.api.meta import JSON, Key, LabelSelectorRequirement
from volcano.scheduler.core.node_table import Mask, NodeTable, Rows
from volcano.scheduler.framework.answers import Cause, Code
from volcano.scheduler.framework.record import VolumeChoice
from volcano.scheduler.model import ClusterObjects, Task
from volcano.scheduler.plugins.predicates.claims import (
    SELECTED_NODE,
    Claims,
    can_provision,
    capacity_of,
    claims_of,
    class_of,
    could_take,
    is_kept_for,
)

UNREACHABLE: Final = "node(s) didn't match PersistentVolume's node affinity"
NONE_TO_BIND: Final = "node(s) didn't find available persistent volumes to bind"
VANISHED: Final = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
ZONELESS: Final = "node(s) had no available volume zone"
ZONE_KEYS: Final = {
    "topology.kubernetes.io/zone": "failure-domain.beta.kubernetes.io/zone",
    "topology.kubernetes.io/region": "failure-domain.beta.kubernetes.io/region",
}
PROVISION: Final = -2
NOWHERE: Final = -1


class VolumeBinding:
    def __init__(self, table: NodeTable, around: ClusterObjects) -> None:
        self._table, self._around = table, around
        self._claims: dict[str, Claims] = {}
        self._assumed: dict[str, Key] = {}  # volume → the claim that will have it
        self._chosen: dict[Key, str] = {}  # claim → the node it was decided for
        self._reserved: dict[str, tuple[VolumeChoice, ...]] = {}  # by task uid

    def claims(self, task: Task) -> Claims:
        found = self._claims.get(task.uid)
        if found is None:
            found = self._claims[task.uid] = claims_of(task.pod, self._around)
        return found

    # -- refusing ------------------------------------------------------------------------------------------------
    def causes(self, claims: Claims) -> Iterable[Cause]:
        unreachable, vanished = self._table.no_rows(), self._table.no_rows()
        for _, name in claims.bound:
            volume = self._around.volumes.get(name)
            if volume is None:
                vanished = ~unreachable
                break
            unreachable |= ~self._reachable(volume)
        lacking = self._table.no_rows()
        for _, _, choice in self._choices(claims):
            lacking |= choice == NOWHERE
        for refused, reason in ((unreachable, UNREACHABLE), (lacking, NONE_TO_BIND), (vanished, VANISHED)):
            if refused.any():
                yield Cause(refused, Code.UNRESOLVABLE, reason)

    def zoneless(self, claims: Claims) -> Mask:
        """Nodes in another zone or region than a bound volume is labelled with."""
        refused = self._table.no_rows()
        labels = self._table.labels
        names = [name for pair in ZONE_KEYS.items() for name in pair]
        placed = np.any([labels.column(name).codes >= 0 for name in names], axis=0)
        for _, name in claims.bound:
            volume = self._around.volumes.get(name)
            for key, older in ZONE_KEYS.items() if volume is not None else ():
                stated = volume.labels.get(key) or volume.labels.get(older) if volume is not None else None
                if stated:
                    allowed = {part.strip() for part in stated.split("__")}
                    refused |= placed & ~(self._has(key, allowed) | self._has(older, allowed))
        return refused

    def _has(self, key: str, values: set[str]) -> Mask:
        column = self._table.labels.column(key)
        wanted = [place for value, place in column.places.items() if value in values]
        return np.isin(column.codes, wanted)

    def _reachable(self, volume: PersistentVolume) -> Mask:
        affinity = volume.spec.node_affinity
        if affinity is None or affinity.required is None:
            return np.ones(len(self._table), dtype=bool)
        return self._table.labels.in_any_term(affinity.required)

    # -- choosing ------------------------------------------------------------------------------------------------
    def _choices(self, claims: Claims) -> list[tuple[Key, list[PersistentVolume], Rows]]:
        """For each waiting claim, smallest first: candidate volumes, and per node which (or PROVISION, or NOWHERE)."""
        taken: dict[str, Mask] = {}
        choices = []
        for key, claim in claims.waiting:
            volumes = [v for v in self._around.volumes.values() if could_take(v, key, claim)]
            volumes = [v for v in volumes if self._assumed.get(v.name, key) == key]
            volumes.sort(key=lambda v: (not is_kept_for(v, key, claim), capacity_of(v), v.name))
            choice = np.full(len(self._table), NOWHERE, dtype=np.intp)
            for place, volume in enumerate(volumes):
                free = (choice == NOWHERE) & self._reachable(volume) & ~taken.get(volume.name, self._table.no_rows())
                choice[free] = place
                taken[volume.name] = taken.get(volume.name, self._table.no_rows()) | free
            choice[(choice == NOWHERE) & self._provisionable(claim)] = PROVISION
            elsewhere = claim.annotations.get(SELECTED_NODE) or self._chosen.get(key)
            if elsewhere:
                choice[self._table.labels.names.codes != self._table.labels.names.places.get(elsewhere, -5)] = NOWHERE
            choices.append((key, volumes, choice))
        return choices

    def _provisionable(self, claim: PersistentVolumeClaim) -> Mask:
        storage_class = self._around.storage_classes.get(class_of(claim))
        if storage_class is None or not can_provision(storage_class):
            return self._table.no_rows()
        terms = allowed_topologies(storage_class)
        if not terms:
            return np.ones(len(self._table), dtype=bool)
        return self._table.labels.in_any_term(NodeSelector(node_selector_terms=terms))

    def reserve(self, task: Task) -> str | None:
        """Assume the volumes this placement would use; an objection when there are none any more."""
        claims = self.claims(task)
        row = self._table.index[task.node]
        reserved: list[VolumeChoice] = []
        for key, volumes, choice in self._choices(claims):
            place = int(choice[row])
            if place == NOWHERE:
                return NONE_TO_BIND
            name = "" if place == PROVISION else volumes[place].name
            reserved.append(VolumeChoice(key, task.node, name))
        for decided in reserved:
            self._chosen[decided.claim] = task.node
            if decided.volume:
                self._assumed[decided.volume] = decided.claim
        self._reserved[task.uid] = tuple(reserved)
        return None

    def release(self, task: Task) -> None:
        for decided in self._reserved.pop(task.uid, ()):
            self._chosen.pop(decided.claim, None)
            self._assumed.pop(decided.volume, None)

    def reserved(self, uid: str) -> tuple[VolumeChoice, ...]:
        return self._reserved.get(uid, ())


def allowed_topologies(storage_class: StorageClass) -> list[NodeSelectorTerm]:
    def term(stated: JSON) -> NodeSelectorTerm:
        expressions = stated.get("matchLabelExpressions") or []
        return NodeSelectorTerm(
            match_expressions=[
                LabelSelectorRequirement(key=e.get("key", ""), operator="In", values=e.get("values") or [])
                for e in expressions
            ]
        )

    return [term(stated) for stated in storage_class.allowed_topologies]
