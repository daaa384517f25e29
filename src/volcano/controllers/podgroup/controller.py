"""podgroup: every pod for our schedulers has a PodGroup, and says which.

Looks at pods without a group, and at ReplicaSets and StatefulSets, whose group goes when they are scaled to nothing.
Groups that people make themselves are not touched, nor are the pods of Volcano Jobs, which come with a group.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from enum import StrEnum
from typing import ClassVar, Final

import msgspec

from volcano.api.core import BatchJob, DaemonSet, Pod, ReplicaSet, StatefulSet
from volcano.api.meta import JSON, Key, Resource
from volcano.api.scheduling import GROUP_NAME_ANNOTATION, PodGroup, PodGroupSpec
from volcano.api.scheme import resource_type
from volcano.api.selectors import labels_selector
from volcano.controllers.podgroup.groups import group_for, group_name, inherited_annotations, owned_group_name
from volcano.machinery.controller import Controller, Wake, Waker
from volcano.machinery.plan import NOTHING, Create, Delete, Found, Look, Patch, Plan, Ref, merge_difference, ref
from volcano.machinery.world import Change, World

OWNERS: Final[Mapping[tuple[str, str], type[Resource]]] = {
    ("apps", "ReplicaSet"): ReplicaSet,
    ("apps", "DaemonSet"): DaemonSet,
    ("apps", "StatefulSet"): StatefulSet,
    ("batch", "Job"): BatchJob,
}
"""Owners whose annotations a group inherits."""
LOOKED_UP: Final = (DaemonSet, BatchJob)
"""Owners that are asked for when a group is made, rather than followed: few pods for us have them."""

REVISION_LABEL: Final = "controller-revision-hash"


class What(StrEnum):
    """Keys of several kinds share one controller, so the kind is part of the key's name."""

    POD = "pod"
    REPLICA_SET = "replicaset"
    STATEFUL_SET = "statefulset"


class PodGroupController(Controller):
    """Makes PodGroups for plain pods."""

    name: ClassVar = "podgroup"

    def __init__(
        self,
        *,
        scheduler_names: Iterable[str] = ("volcano",),
        inherit_owner_annotations: bool = True,
        workload_support: bool = True,
    ) -> None:
        self._schedulers = frozenset(scheduler_names)
        self._inherits = inherit_owner_annotations
        self._workloads = workload_support

    @property
    def wakes_on(self) -> Mapping[type[Resource], Waker]:
        wakers: dict[type[Resource], Waker] = {Pod: self._pods}
        if self._workloads:
            wakers |= {ReplicaSet: _named(What.REPLICA_SET), StatefulSet: _named(What.STATEFUL_SET)}
        return wakers

    @property
    def reads(self) -> tuple[type[Resource], ...]:
        return (PodGroup, ReplicaSet, StatefulSet)

    def _pods(self, change: Change[Pod]) -> Iterable[Wake]:
        if change.new is not None and self._concerns(change.new):
            yield Wake(_key(What.POD, change.new.key))

    def _concerns(self, pod: Pod) -> bool:
        return (
            pod.spec.scheduler_name in self._schedulers
            and not pod.annotations.get(GROUP_NAME_ANNOTATION)
            and not pod.is_deleting
        )

    def decide(self, key: Key, world: World, causes: tuple[Hashable, ...]) -> Plan:
        what, _, name = key.name.partition("/")
        target = Key(key.namespace, name)
        match what:
            case What.POD:
                return self._give_group(world.get(Pod, target), world, causes)
            case What.REPLICA_SET:
                return self._follow(world.get(ReplicaSet, target), world, {})
        stateful = world.get(StatefulSet, target)
        revision = (stateful.status or {}).get("updateRevision") if stateful is not None else None
        return self._follow(stateful, world, {REVISION_LABEL: revision} if revision else {})

    def _give_group(self, pod: Pod | None, world: World, causes: tuple[Hashable, ...]) -> Plan:
        if pod is None or not self._concerns(pod):
            return NOTHING
        if world.get(PodGroup, Key(pod.namespace, group_name(pod))) is not None:
            return (_annotated(pod),)
        found = [cause for cause in causes if isinstance(cause, Found)]
        unknown = [owner for owner in self._owners_to_ask_for(pod) if owner not in (each.target for each in found)]
        if unknown:
            return tuple(Look(owner) for owner in unknown)
        annotations = [dict(each.annotations) for each in found if each.present]
        group = group_for(pod, inherited_annotations([*self._owners(pod, world), *annotations]))
        return (Create(resource_type(PodGroup), group), _annotated(pod))

    def _owners_to_ask_for(self, pod: Pod) -> Iterable[Ref]:
        for owner in pod.metadata.owner_references if self._inherits else ():
            kind = OWNERS.get((owner.api_version.partition("/")[0], owner.kind))
            if kind is not None and kind in LOOKED_UP:
                yield Ref(resource_type(kind), Key(pod.namespace, owner.name), owner.uid)

    def _follow(self, workload: ReplicaSet | StatefulSet | None, world: World, revision: dict[str, str]) -> Plan:
        """No replicas, no group; else the group is as the first pod of the workload wants it."""
        if workload is None or workload.is_deleting:
            return NOTHING
        group = world.get(PodGroup, Key(workload.namespace, owned_group_name(workload.uid)))
        if workload.spec.replicas == 0:
            return (Delete(ref(group)),) if group is not None else NOTHING
        pod = self._first_pod(workload, world, revision)
        if pod is None:
            return NOTHING
        wanted = self._group(pod, world)
        if group is None:
            return (Create(resource_type(PodGroup), wanted), _annotated(pod))
        patch = _difference(group, wanted)
        return (*((Patch(ref(group), patch),) if patch else ()), _annotated(pod))

    def _first_pod(self, workload: ReplicaSet | StatefulSet, world: World, revision: dict[str, str]) -> Pod | None:
        selector = workload.spec.selector or {}
        wanted = labels_selector({**(selector.get("matchLabels") or {}), **revision})
        mine = world.where(Pod, "owner", workload.uid)
        return next((pod for pod in mine if wanted.matches(pod.labels) and self._concerns(pod)), None)

    def _group(self, pod: Pod, world: World) -> JSON:
        return group_for(pod, inherited_annotations(self._owners(pod, world)))

    def _owners(self, pod: Pod, world: World) -> Iterable[Mapping[str, str]]:
        if not self._inherits:
            return
        for owner in pod.metadata.owner_references:
            kind = OWNERS.get((owner.api_version.partition("/")[0], owner.kind))
            if kind is None or kind in LOOKED_UP:
                continue
            found = world.get(kind, Key(pod.namespace, owner.name))
            if found is not None and found.uid == owner.uid:
                yield found.annotations


def _key(what: What, key: Key) -> Key:
    return Key(key.namespace, f"{what}/{key.name}")


def _named(what: What) -> Waker:
    return lambda change: (Wake(_key(what, change.new.key)),) if change.new is not None else ()


def _annotated(pod: Pod) -> Patch:
    return Patch(ref(pod), {"metadata": {"annotations": {GROUP_NAME_ANNOTATION: group_name(pod)}}})


def _difference(group: PodGroup, wanted: JSON) -> JSON:
    """A merge patch of what the workload's pods want otherwise; a queue they do not name stays as it is."""
    patch: JSON = {}
    have, want = group.spec, msgspec.convert(wanted["spec"], PodGroupSpec)
    spec: JSON = {}
    if have.min_member != want.min_member:
        spec["minMember"] = want.min_member
    if have.min_resources != want.min_resources:
        spec["minResources"] = merge_difference(have.min_resources or {}, want.min_resources)
    if have.priority_class_name != want.priority_class_name:
        spec["priorityClassName"] = want.priority_class_name or None
    if have.network_topology != want.network_topology:
        spec["networkTopology"] = wanted["spec"].get("networkTopology")
    if "queue" in wanted["spec"] and have.queue != want.queue:
        spec["queue"] = want.queue
    if spec:
        patch["spec"] = spec
    metadata: JSON = {}
    for field, known in (("annotations", group.annotations), ("labels", group.labels)):
        fresh = {key: value for key, value in wanted["metadata"][field].items() if known.get(key) != value}
        if fresh:
            metadata[field] = fresh
    return {**patch, **({"metadata": metadata} if metadata else {})}
