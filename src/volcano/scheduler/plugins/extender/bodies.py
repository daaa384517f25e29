"""The bodies sent to an extender: tasks, nodes, jobs and queues with the field names of Volcano's own structures."""

from __future__ import annotations

from typing import Any

import msgspec

from volcano.api.meta import JSON
from volcano.scheduler.core.node_table import Column, NodeTable
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import CPU, MEMORY, Job, Node, Queue, Resources, Task


def amount_body(amount: Resources) -> JSON:
    scalars = {name: amount[name] for name in amount.scalars}
    return {"MilliCPU": amount[CPU], "Memory": amount[MEMORY], "ScalarResources": scalars}


def task_body(task: Task, *, with_pod: bool = True) -> JSON:
    body: JSON = {
        "UID": task.uid,
        "Job": task.job_id,
        "Name": task.name,
        "Namespace": task.namespace,
        "TaskRole": task.role,
        "Resreq": amount_body(task.request),
        "InitResreq": amount_body(task.request),
        "NodeName": task.node,
        "Status": 1 << task.status,
        "Priority": task.priority,
        "Preemptable": task.preemptable,
        "BestEffort": task.best_effort,
        "RevocableZone": task.revocable_zone,
    }
    return {**body, "Pod": _plain(task.pod)} if with_pod else body


def node_body(table: NodeTable, node: Node) -> JSON:
    def amounts(column: Column) -> JSON:
        values = {name: float(column[place, node.row]) for name, place in table.resources.items()}
        return amount_body(Resources({name: value for name, value in values.items() if value or name in (CPU, MEMORY)}))

    return {
        "Name": node.name,
        "Node": _plain(node.object),
        "Allocatable": amounts(table.allocatable),
        "Capacity": amounts(table.capacity),
        "Idle": amounts(table.idle),
        "Used": amounts(table.used),
        "Releasing": amounts(table.releasing),
        "Pipelined": amounts(table.pipelined),
        "Tasks": {task.uid: task_body(task, with_pod=False) for task in node.tasks.values()},
        "RevocableZone": node.revocable_zone,
    }


def job_body(job: Job) -> JSON:
    return {
        "UID": job.id,
        "PgUID": job.uid,
        "Name": job.name,
        "Namespace": job.namespace,
        "Queue": job.queue,
        "Priority": job.priority,
        "MinAvailable": job.min_available,
        "TaskMinAvailable": dict(job.role_minimums),
        "Allocated": amount_body(job.allocated),
        "TotalRequest": amount_body(job.total_request),
        "Preemptable": job.preemptable,
        "RevocableZone": job.revocable_zone,
        "PodGroup": _plain(job.group),
        "Tasks": {task.uid: task_body(task, with_pod=False) for task in job.tasks.values()},
    }


def queue_body(queue: Queue) -> JSON:
    return {"UID": queue.name, "Name": queue.name, "Weight": queue.weight, "Queue": _plain(queue.object)}


def session_body(session: Session) -> JSON:
    nodes = {node.name: node_body(session.table, node) for node in session.table.nodes}
    return {
        "Jobs": {job.id: job_body(job) for job in session.jobs.values()},
        "Nodes": nodes,
        "Queues": {queue.name: queue_body(queue) for queue in session.queues.values() if queue.is_charged},
        "NamespaceInfo": {name: {"Name": name} for name in session.snapshot.cluster.namespaces},
        "RevocableNodes": {node.name: nodes[node.name] for node in session.table.nodes if node.revocable_zone},
        "NodeList": None,
    }


def _plain(value: Any) -> Any:
    return msgspec.to_builtins(value) if value is not None else None
