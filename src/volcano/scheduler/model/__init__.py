"""The nouns of a decision: Task, Job, Queue, Node, Domain and amounts. Plain values; nothing here decides."""

from volcano.scheduler.model.chance import Chance, SeededChance, StoppedTimer, Timer
from volcano.scheduler.model.cluster_objects import ClusterObjects, Shard
from volcano.scheduler.model.domain import ROOT, Domain, Domains
from volcano.scheduler.model.job import Counts, Job, SubJob, Topology
from volcano.scheduler.model.node import Node, NodeUsage
from volcano.scheduler.model.queue import Queue
from volcano.scheduler.model.resources import CPU, EPSILON, MEMORY, PODS, Resources, resources_from
from volcano.scheduler.model.status import Status
from volcano.scheduler.model.task import DAWN, LastTransaction, Shape, Task

__all__ = [
    "CPU",
    "DAWN",
    "EPSILON",
    "MEMORY",
    "PODS",
    "ROOT",
    "Chance",
    "ClusterObjects",
    "Counts",
    "Domain",
    "Domains",
    "Job",
    "LastTransaction",
    "Node",
    "NodeUsage",
    "Queue",
    "Resources",
    "SeededChance",
    "Shape",
    "Shard",
    "Status",
    "StoppedTimer",
    "SubJob",
    "Task",
    "Timer",
    "Topology",
    "resources_from",
]
