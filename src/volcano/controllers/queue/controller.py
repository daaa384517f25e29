"""queue: reconcile each Queue's state, parent and counters with its Commands, its parent and its PodGroups.

A queue closes and opens with its parent; a parent whose state changed requeues its children. A cascade that a crash
interrupted therefore continues when the queues are listed again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import ClassVar, Final

import msgspec

from volcano.api.bus import Command, command_order
from volcano.api.indexes import QUEUES_BY_PARENT, Indexes
from volcano.api.meta import Key, Resource
from volcano.api.scheduling import ROOT_QUEUE, PodGroup, Queue
from volcano.controllers.queue.states import SHUT, Act, QueueAction, QueueState, act_on, closed, settled, state_from
from volcano.machinery.controller import Controller, Wake, Waker, by, self_key
from volcano.machinery.plan import Delete, Later, Patch, Plan, Record, Ref, Step, patch_status, ref
from volcano.machinery.world import Change, World

CLOSED_BY_PARENT: Final = "volcano.sh/closed-by-parent"
TARGET: Final = ("scheduling.volcano.sh/v1beta1", "Queue")
FIRST_RETRY_DELAY: Final = timedelta(milliseconds=5)
AT_ONCE: Final = timedelta(0)


COUNT: Final = "count"
COUNTERS_DELAY: Final = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class QueueRequest:
    """An action asked of a queue: by a Command, which is deleted before it is acted on, or again after a refusal."""

    asked: QueueAction
    command: Ref | None = None
    target_uid: str = ""
    tries: int = 0
    order: tuple[int, str] = (0, "")  # of the Command among others


class QueueController(Controller):
    """Opens and closes queues, and counts their PodGroups.

    All it remembers is the newest Command that it obeyed for each queue: an older one that is retried, after a failure
    or since the parent is closed, comes too late. Retries are lost with the memory of them.
    """

    name: ClassVar = "queue"
    indexes: ClassVar[Indexes] = {**QUEUES_BY_PARENT, PodGroup: {"queue": lambda group: [group.spec.queue]}}

    def __init__(self, *, max_requeue: int = 15, commands: bool = True) -> None:
        self._max_requeue = max_requeue
        self._obeys = commands
        self._newest: dict[Key, tuple[int, str]] = {}

    @property
    def wakes_on(self) -> Mapping[type[Resource], Waker]:
        wakers: dict[type[Resource], Waker] = {Queue: self_key, PodGroup: by(_queue_of)}
        return {**wakers, Command: _commands} if self._obeys else wakers

    def decide(self, key: Key, world: World, causes: tuple[Hashable, ...]) -> Plan:
        requests = sorted((c for c in causes if isinstance(c, QueueRequest)), key=lambda request: request.order)
        taken = tuple(Delete(request.command) for request in requests if request.command is not None)
        queue = world.get(Queue, key)
        if queue is None or queue.is_deleting:
            self._newest.pop(key, None)
            return taken
        decision = _Decision(queue, world, self._max_requeue, counts=COUNT in causes)
        for request in requests:
            if (not request.target_uid or request.target_uid == queue.uid) and self._is_newest(key, request):
                decision.act(request)
        decision.follow_parent()
        return (*taken, *decision.steps())

    def _is_newest(self, key: Key, request: QueueRequest) -> bool:
        if request.asked is QueueAction.SYNC:
            return True  # it asks for nothing that an older one could undo
        self._newest[key] = max(request.order, self._newest.get(key, request.order))
        return request.order == self._newest[key]


class _Decision:
    """One reconcile of one queue: its present state, its next state, and the steps between them."""

    def __init__(self, queue: Queue, world: World, max_requeue: int, *, counts: bool) -> None:
        self.queue, self.world, self.max_requeue, self.counts = queue, world, max_requeue, counts
        self.groups = world.where(PodGroup, "queue", queue.name)
        self.state = settled(state_from(queue.status.state), busy=bool(self.groups))
        self.mark = queue.annotations.get(CLOSED_BY_PARENT)
        self.notes: list[Step] = []

    @property
    def is_root(self) -> bool:
        return self.queue.name == ROOT_QUEUE

    def act(self, request: QueueRequest) -> None:
        act = act_on(self.state, request.asked)
        if act is Act.OPEN:
            self._open(request)
        elif act is Act.CLOSE and not self.is_root:
            self._close(by_parent=False)

    def follow_parent(self) -> None:
        """A queue closes with its parent, and opens with it again if that is why it was closed."""
        parent = self._parent()
        above = state_from(parent.status.state) if parent is not None else QueueState.OPEN
        if above in SHUT and self.state not in SHUT:
            self._close(by_parent=True)
        elif above is QueueState.OPEN and self.mark == "true":
            if self.state in SHUT:
                self._open(QueueRequest(QueueAction.OPEN))
            self.mark = "false"  # also where opening was cut short before the mark was changed

    def _parent(self) -> Queue | None:
        parent = self.queue.spec.parent or ROOT_QUEUE
        return self.world.get(Queue, Key("", parent)) if parent != ROOT_QUEUE else None

    def _open(self, request: QueueRequest) -> None:
        parent = self._parent()
        if parent is not None and state_from(parent.status.state) in SHUT:
            self._wait_for_parent(request, parent)
            return
        self.state, self.mark = QueueState.OPEN, "false"

    def _wait_for_parent(self, request: QueueRequest, parent: Queue) -> None:
        """Retry, since the parent may be opened by a Command of the same moment; after max_requeue retries, refuse."""
        if request.tries < self.max_requeue or self.max_requeue < 0:
            again = replace(request, command=None, target_uid=self.queue.uid, tries=request.tries + 1)
            self.notes.append(Later(FIRST_RETRY_DELAY * (1 << min(request.tries, 20)), again))
            return
        message = f"the parent queue {parent.name} is {parent.status.state}; open it first"
        self.notes.append(Record(ref(self.queue), QueueAction.OPEN, message, "Warning"))

    def _close(self, *, by_parent: bool) -> None:
        self.state = closed(busy=bool(self.groups))
        if by_parent:
            self.mark = "true"
        elif self.mark == "true":
            self.mark = "false"  # else the open parent would open it again at once
        self.notes.append(Record(ref(self.queue), QueueAction.CLOSE, f"the queue is {self.state.lower()}"))

    def steps(self) -> Plan:
        """Closing marks first and opening marks last, so that a crash between the two never leaves a queue shut."""
        state = (*self._mark_steps(), *self._status_steps())
        if self.state is QueueState.OPEN:
            state = (*self._status_steps(), *self._mark_steps())
        return (*self._spec_steps(), *state, *self._children_steps(), *self.notes)

    def _spec_steps(self) -> Iterable[Step]:
        if not self.is_root and not self.queue.spec.parent:
            yield Patch(ref(self.queue), {"spec": {"parent": ROOT_QUEUE}})

    def _mark_steps(self) -> Iterable[Step]:
        if self.mark is not None and self.mark != self.queue.annotations.get(CLOSED_BY_PARENT):
            yield Patch(ref(self.queue), {"metadata": {"annotations": {CLOSED_BY_PARENT: self.mark}}})

    def _status_steps(self) -> Iterable[Step]:
        status = msgspec.structs.replace(self.queue.status, state=str(self.state), **_counts(self.groups))
        if status == self.queue.status:
            return
        if status.state == self.queue.status.state and not self.counts:
            yield Later(COUNTERS_DELAY, COUNT)  # debounce: many changed groups become one write
            return
        yield patch_status(self.queue, status, fresh=False)

    def _children_steps(self) -> Iterable[Step]:
        """Requeue the children that have to follow: a change of a queue wakes only the queue itself."""
        for child in self.world.where(Queue, "parent", self.queue.name):
            state = state_from(child.status.state)
            must_close = self.state in SHUT and state not in SHUT
            may_open = self.state is QueueState.OPEN and state in SHUT
            if must_close or (may_open and child.annotations.get(CLOSED_BY_PARENT) == "true"):
                yield Later(AT_ONCE, key=child.key)


def _queue_of(group: PodGroup) -> Key | None:
    return Key("", group.spec.queue) if group.spec.queue else None


def _commands(change: Change[Command]) -> Iterable[Wake]:
    command, target = change.new, change.object.target
    if change.old is not None or command is None or target is None:
        return
    if (target.api_version, target.kind) == TARGET:
        asked = QueueAction(command.action) if command.action in tuple(QueueAction) else QueueAction.SYNC
        yield Wake(Key("", target.name), QueueRequest(asked, ref(command), target.uid, order=command_order(command)))


def _counts(groups: list[PodGroup]) -> dict[str, int]:
    phases = Counter(group.phase.lower() for group in groups)
    return {phase: phases[phase] for phase in ("pending", "running", "unknown", "inqueue", "completed")}
