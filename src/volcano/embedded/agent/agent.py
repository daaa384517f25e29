"""The node agent: registers its nodes, watches the pods bound to them, has a runtime run them, reports their status.

This module only connects the parts: lifecycle decides, a Runtime carries out, StatusWriter writes. One agent serves
any number of nodes with one watch.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Final, Protocol

from volcano.api.core import Node
from volcano.api.kubelet import AgentPod
from volcano.api.meta import JSON, Key
from volcano.api.times import timestamp
from volcano.embedded.agent.lifecycle.pod_events import (
    Deleted,
    EmitEvent,
    Forget,
    PodCommand,
    PodEvent,
    Remove,
    ShutDown,
    Vanished,
    WakeAt,
    Woken,
)
from volcano.embedded.agent.lifecycle.pod_lifecycle import begin, step
from volcano.embedded.agent.lifecycle.pod_record import PodRecord
from volcano.embedded.agent.lifecycle.pod_status import phase_of, status_of
from volcano.embedded.agent.node.node_registration import NodeRegistration
from volcano.embedded.agent.node.settings import NodeSettings
from volcano.embedded.agent.runtime.contract import Runtime
from volcano.embedded.agent.status_writer import StatusWriter
from volcano.embedded.agent.timers import Timers
from volcano.machinery.apply import Applier
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock
from volcano.machinery.events import EventRecorder
from volcano.machinery.informer import Informer
from volcano.machinery.plan import Record, ref
from volcano.machinery.world import Change, Mirror

log = logging.getLogger(__name__)
PENDING_STATUS_DELAY: Final = timedelta(milliseconds=300)
"""Pending is reported only after this delay: most pods run by then, which saves a status write per pod."""


class KubeletEndpoint(Protocol):
    """Serves logs and exec of the agent's pods; `open` returns the port."""

    async def open(
        self, find: Callable[[str, str], PodOnNode | None], pods: Callable[[], Iterable[PodOnNode]]
    ) -> int: ...

    async def close(self) -> None: ...


class AgentService(Protocol):
    """A background service that runs with the agent until cancelled."""

    async def run(self) -> None: ...


class PodOnNode:
    """A pod this agent runs: the API object, and the record of its actual state."""

    __slots__ = ("_clock", "_host_address", "_runtime", "_transitions", "pod", "record")

    def __init__(self, pod: AgentPod, record: PodRecord, clock: Clock, *, host_address: str, runtime: str) -> None:
        self.pod, self.record = pod, record
        self._clock, self._host_address, self._runtime = clock, host_address, runtime
        self._transitions = {
            each.type: (each.status, timestamp(each.last_transition_time))
            for each in pod.status.conditions
            if each.last_transition_time is not None
        }

    @property
    def is_removed(self) -> bool:
        return self.record.is_removed

    def status(self) -> JSON:
        """The status to report; a condition that did not change keeps its transition time."""
        status = status_of(
            self.pod, self.record, self._clock.now(), host_address=self._host_address, runtime=self._runtime
        )
        for condition in status["conditions"]:
            known = self._transitions.get(condition["type"])
            if known is not None and known[0] == condition["status"]:
                condition["lastTransitionTime"] = known[1]
            self._transitions[condition["type"]] = (condition["status"], condition["lastTransitionTime"])
        return status


class Agent:
    """Runs until cancelled. `ready` returns once its nodes can be used; `shut_down` ends its pods."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        settings: NodeSettings,
        runtime: Runtime,
        *,
        kubelet: KubeletEndpoint | None = None,
        services: Sequence[AgentService] = (),
    ) -> None:
        self._client, self._clock, self._settings, self._runtime = client, clock, settings, runtime
        self._kubelet, self._services = kubelet, tuple(services)
        self._node_names = frozenset(shape.name for shape in settings.nodes)
        self.mirror = Mirror(clock.now)
        self.recorder = EventRecorder(client, clock, "kubelet")
        self._applier = Applier(client, clock, recorder=self.recorder)
        self._timers = Timers(clock)
        self._pods: dict[str, PodOnNode] = {}
        self._writer = StatusWriter(self._applier, self._timers, self._pods.get)
        self._uid_by_key: dict[Key, str] = {}
        self._registration: NodeRegistration | None = None
        self._ready = asyncio.Event()
        self._quiet = asyncio.Event()
        self._is_ending = False

    async def ready(self) -> None:
        """Return when every node is registered and Ready and its pods are known."""
        await self._ready.wait()

    async def run(self) -> None:
        """Run until cancelled. Pods keep running afterwards, unless `shut_down` ended them."""
        await self._runtime.open(self._on_event)
        port = self._settings.kubelet_port
        if self._kubelet is not None:
            port = await self._kubelet.open(self.find, self._pods.values)
        registration = self._registration = NodeRegistration(
            self._applier,
            self._clock,
            self._settings,
            runtime=self._runtime.name,
            annotations=self._runtime.annotations,
            kubelet_port=port,
        )
        informer = Informer(self._client, self.mirror, self._clock, AgentPod, fields="spec.nodeName!=")
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._timers.run())
                group.create_task(self._writer.run())
                group.create_task(self.recorder.run())
                self.mirror.listen(AgentPod, self._on_pod_change)
                group.create_task(informer.run())
                await informer.synced()
                self._runtime.end_unknown_pods(self._pods.keys())
                await registration.register()
                group.create_task(registration.keep_alive())
                self.mirror.listen(Node, registration.observe)
                group.create_task(Informer(self._client, self.mirror, self._clock, Node).run())
                group.create_task(registration.keep_conditions())
                for service in self._services:
                    group.create_task(service.run())
                self._ready.set()
        finally:
            if self._kubelet is not None:
                await self._kubelet.close()
            await self._runtime.close()

    async def shut_down(self, grace: timedelta) -> None:
        """End all pods as a graceful node shutdown does, and report how they ended."""
        self._is_ending = True
        leaving = asyncio.ensure_future(self._registration.leave()) if self._registration is not None else None
        for uid in list(self._pods):
            self._on_event(uid, ShutDown(grace))
        while any(each.record.has_live for each in self._pods.values()):
            self._quiet.clear()
            await self._quiet.wait()
        await self._writer.settled()
        if leaving is not None:
            await leaving

    def find(self, namespace: str, name: str) -> PodOnNode | None:
        """The pod of that name, if this agent runs it."""
        return self._pods.get(self._uid_by_key.get(Key(namespace, name), ""))

    @property
    def pods(self) -> Mapping[str, PodOnNode]:
        """The pods of this agent, by UID."""
        return self._pods

    # -- incoming changes and events --------------------------------------------------------------------------
    def _on_pod_change(self, change: Change[AgentPod]) -> None:
        """A bound pod changed in the API."""
        pod = change.object
        self._runtime.observe(pod, is_gone=change.new is None)
        if pod.spec.node_name not in self._node_names:
            return
        known = self._pods.get(pod.uid)
        if change.new is None:
            if known is not None:
                self._on_event(pod.uid, Vanished())
        elif known is None:
            if not self._is_ending:
                self._adopt(pod)
        else:
            was_deleting, known.pod = known.record.is_deleted, pod
            if change.old is not None and _is_ready(change.old) and not _is_ready(pod):
                self._writer.mark_overwritten(pod.uid)  # by node health, while this node was silent
            grace_changed = change.old is not None and change.old.grace != pod.grace
            if pod.is_deleting and (not was_deleting or grace_changed):
                self._on_event(pod.uid, Deleted(pod.grace))

    def _adopt(self, pod: AgentPod) -> None:
        found = self._runtime.resume(pod)
        record, commands = begin(pod, found, self._clock.now())
        known = PodOnNode(pod, record, self._clock, host_address=self._settings.address, runtime=self._runtime.name)
        self._pods[pod.uid] = known
        self._uid_by_key[pod.key] = pod.uid
        self._follow(known, commands, was=None)

    def _on_event(self, uid: str, event: PodEvent) -> None:
        """The runtime, a timer or a shutdown reports an event of a pod."""
        known = self._pods.get(uid)
        if known is None:
            return
        was = known.record
        known.record, commands = step(known.pod, was, event, self._clock.now())
        self._follow(known, commands, was=was)
        self._quiet.set()

    # -- commands and reports ----------------------------------------------------------------------------------------
    def _follow(self, known: PodOnNode, commands: tuple[PodCommand, ...], *, was: PodRecord | None) -> None:
        if known.record is not was:
            self._report(known)
        for command in commands:
            self._carry_out(known, command)

    def _report(self, known: PodOnNode) -> None:
        record, uid = known.record, known.pod.uid
        if record.is_finished and known.pod.is_finished and not record.is_deleted:
            return  # the API already has the final status
        if phase_of(record) == "Pending" and record.trouble is None and record.ending is None:
            self._timers.after(PENDING_STATUS_DELAY, lambda: self._writer.mark_changed(uid))
            return
        self._writer.mark_changed(uid)

    def _carry_out(self, known: PodOnNode, command: PodCommand) -> None:
        pod, uid = known.pod, known.pod.uid
        match command:
            case WakeAt(at):
                self._timers.at(at, lambda: self._on_event(uid, Woken()))
            case EmitEvent(reason, message, kind):
                self.recorder.record(Record(ref(pod), reason, message, kind))
            case Remove():
                self._writer.mark_changed(uid)
            case Forget():
                self._runtime.carry_out(pod, command)
                self._pods.pop(uid, None)
                if self._uid_by_key.get(pod.key) == uid:
                    del self._uid_by_key[pod.key]
                self._writer.forget(uid)
            case _:
                self._runtime.carry_out(pod, command)


def _is_ready(pod: AgentPod) -> bool:
    return any(each.type == "Ready" and each.status == "True" for each in pod.status.conditions)
