"""Statement: a list of operations, applied to the session at once, and turned into decisions on commit.

Roll back to a checkpoint, discard, or commit; operations are undone in reverse order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from itertools import groupby
from typing import NamedTuple

from volcano.scheduler.core.fit import fits_row
from volcano.scheduler.framework.record import BindDecision, EvictionDecision
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import Job, LastTransaction, Node, Status, Task


class Kind(Enum):
    ALLOCATE = "allocate"
    PIPELINE = "pipeline"
    EVICT = "evict"


class Operation(NamedTuple):
    kind: Kind
    task: Task
    node: str = ""
    eviction_occurred: bool = False
    reason: str = ""
    preemptor: str = ""


class Statement:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._operations: list[Operation] = []

    def __len__(self) -> int:
        return len(self._operations)

    @property
    def operations(self) -> tuple[Operation, ...]:
        return tuple(self._operations)

    @property
    def has_evictions(self) -> bool:
        return any(operation.kind is Kind.EVICT for operation in self._operations)

    # -- doing ----------------------------------------------------------------------------------------------------
    def allocate(self, task: Task, node: Node) -> str | None:
        """Give the task free room; the objection of a plugin, if any, has already undone it.

        While tasks that are being ended use up the task's queue, it is promised the room.
        """
        job = self._session.jobs.get(task.job_id)
        if job is not None and not self._session.ask.bindable(self._session.queues[job.queue], task):
            return self.pipeline(task, node)
        objection = self._session.moves.place(task, node, Status.ALLOCATED)
        if objection is None:
            self._operations.append(Operation(Kind.ALLOCATE, task, node.name))
        return objection

    def allocate_alike(self, job: Job, tasks: Sequence[Task], rows: Sequence[int]) -> None:
        """Give waiting tasks of one shape of a job free room, each on its row, as `session.alike` permits."""
        nodes = self._session.table.nodes
        self._session.moves.place_alike(job, tasks, rows)
        self._operations += [
            Operation(Kind.ALLOCATE, task, nodes[row].name) for task, row in zip(tasks, rows, strict=True)
        ]

    def pipeline(self, task: Task, node: Node, *, eviction_occurred: bool = False) -> str | None:
        """Promise the task room that others are about to leave."""
        objection = self._session.moves.place(task, node, Status.PIPELINED, eviction_occurred=eviction_occurred)
        if objection is None:
            self._operations.append(Operation(Kind.PIPELINE, task, node.name, eviction_occurred))
        return objection

    def evict(self, task: Task, reason: str, *, preemptor: str = "") -> None:
        node = task.node
        self._session.moves.evict(task)
        self._operations.append(Operation(Kind.EVICT, task, node, reason=reason, preemptor=preemptor))

    # -- undoing --------------------------------------------------------------------------------------------------
    def checkpoint(self) -> int:
        return len(self._operations)

    def roll_back(self, checkpoint: int = 0) -> None:
        """Undo everything after the checkpoint, newest first."""
        while len(self._operations) > checkpoint:
            self._undo(self._operations.pop())

    def discard(self) -> None:
        """Undo everything, and let each task remember where it had been placed, to explain why it waits."""
        for operation in self._operations:
            if operation.kind is not Kind.EVICT:
                task = operation.task
                task.last_transaction = LastTransaction(task.status, task.node, task.eviction_occurred)
        self.roll_back()

    def _undo(self, operation: Operation) -> None:
        if operation.kind is Kind.EVICT:
            self._session.moves.reinstate(operation.task)
        else:
            self._session.moves.lift(operation.task)

    # -- keeping --------------------------------------------------------------------------------------------------
    def commit(self) -> None:
        """Turn the operations into decisions."""
        record, allocated = self._session.record, list[Task]()
        for operation in self._operations:
            task = operation.task
            task.last_transaction = None
            if operation.kind is Kind.EVICT:
                record.evictions[task.uid] = EvictionDecision(
                    task.key, task.uid, operation.node, task.job_id, operation.reason, operation.preemptor
                )
            elif operation.kind is Kind.ALLOCATE:
                allocated.append(task)
        for _, alike in groupby(allocated, key=_kind_of_task):
            bind_alike(self._session, list(alike))
        self._operations.clear()

    def merge(self, *others: Statement) -> None:
        """Take over the others' operations."""
        for other in others:
            self._operations.extend(other._operations)
            other._operations.clear()

    def replay(self, operations: Iterable[Operation]) -> str | None:
        """Do again what was undone; the first objection stops, what was done before it stays done."""
        for operation in operations:
            node = self._session.table.nodes[self._session.table.index[operation.node]]
            objection: str | None = None
            if operation.kind is Kind.EVICT:
                self.evict(operation.task, operation.reason, preemptor=operation.preemptor)
            elif operation.kind is Kind.ALLOCATE:
                objection = self.allocate(operation.task, node)
            else:
                objection = self.pipeline(operation.task, node, eviction_occurred=operation.eviction_occurred)
            if objection is not None:
                return objection
        return None


def bind(session: Session, task: Task) -> None:
    """An allocated task is decided: it will be bound."""
    bind_alike(session, [task])


def bind_alike(session: Session, tasks: Sequence[Task]) -> None:
    """The same for several tasks of one job, role and shape."""
    session.moves.bind_alike(tasks)
    binds = session.record.binds
    for task in tasks:
        binds[task.uid] = BindDecision(task.key, task.uid, task.node, task.job_id, task.bind_annotations)


def _kind_of_task(task: Task) -> tuple[str, str, str, int]:
    return task.job_id, task.role, task.sub_job_id, task.shape.number


def allocate_directly(session: Session, task: Task, node: Node) -> str | None:
    """Without a statement, for tasks that ask for nothing: as soon as the job is ready, all it was given is bound.

    Even such a task needs one of the node's `pods` to be free now; without, it keeps its place in the session only.
    """
    objection = session.moves.place(task, node, Status.ALLOCATED)
    job = session.jobs.get(task.job_id)
    if objection is not None or job is None or not session.ask.job_ready(job):
        return objection
    for allocated in job.with_status(Status.ALLOCATED):
        if not _has_room(session, allocated):
            return f"node {allocated.node} is full"
        bind(session, allocated)
    return None


def _has_room(session: Session, task: Task) -> bool:
    """Whether the node has room for the task beside all tasks there, including those being released."""
    table = session.table
    node = table.nodes[table.index[task.node]]
    room = table.idle[:, node.row].copy()
    for other in node.tasks.values():
        if other.status == Status.ALLOCATED:
            room += table.vector(other.request)
    return fits_row(table, task.request, room)
