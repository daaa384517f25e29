"""What admission's tests start from: objects as JSON, queues in a frozen world, one call for a verdict."""

from volcano.admission.chain import AdmissionChain, ReviewOutcome
from volcano.admission.review import INDEXES, Settings
from volcano.api import batch, core, flow, scheduling, topology
from volcano.api.core import Namespace
from volcano.api.decode import decode_object
from volcano.api.scheduling import Queue
from volcano.api.scheme import resource_type
from volcano.machinery.admission import CREATE, DELETE, Attributes
from volcano.machinery.world import frozen_world

KINDS = {
    "Job": batch.Job,
    "CronJob": batch.CronJob,
    "Queue": scheduling.Queue,
    "PodGroup": scheduling.PodGroup,
    "Pod": core.Pod,
    "JobFlow": flow.JobFlow,
    "HyperNode": topology.HyperNode,
}
DELETED = object()


def a_template(**spec):
    return {"spec": {"containers": [{"name": "main", "image": "busybox"}], **spec}}


def a_task(name="work", replicas=1, **fields):
    return {
        "name": name,
        "replicas": replicas,
        "minAvailable": replicas,
        "template": a_template(),
        "maxRetry": 3,
        **fields,
    }


def a_job(*tasks, name="job", **spec):
    """As it is after the defaults: what /jobs/validate sees."""
    tasks = list(tasks) if tasks else [a_task()]
    full = {"queue": "default", "schedulerName": "volcano", "minAvailable": 1, "maxRetry": 3, "tasks": tasks, **spec}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "ns"},
        "spec": full,
    }


def a_queue(name="q", state="", annotations=None, allocated=None, **spec):
    queue = {
        "kind": "Queue",
        "metadata": {"name": name, "annotations": annotations or {}},
        "spec": {"weight": 1, **spec},
    }
    if state or allocated:
        queue["status"] = {"state": state, "allocated": allocated or {}}
    return queue


def a_world(*queues, namespaces=()):
    """The default queue is always there, open."""
    names = [queue["metadata"]["name"] for queue in queues]
    given = list(queues) if "default" in names else [a_queue("default", "Open"), *queues]
    spaces = [decode_object(Namespace, {"metadata": metadata}) for metadata in namespaces]
    return frozen_world(*(decode_object(Queue, queue) for queue in given), *spaces, indexes=INDEXES)


def review(new, old=None, *, kind=None, world=None, settings=None, operation=None, namespace=None) -> ReviewOutcome:
    """The chain's verdict about creating, updating or deleting an object."""
    subject = old if new is DELETED else new
    kind = kind or (subject.get("kind") if isinstance(subject, dict) else None)
    metadata = subject.get("metadata") if isinstance(subject, dict) else None
    metadata = metadata if isinstance(metadata, dict) else {}
    attributes = Attributes(
        operation=operation or (DELETE if new is DELETED else "UPDATE" if old is not None else CREATE),
        resource=resource_type(KINDS[kind]),
        name=str(metadata.get("name") or ""),
        namespace=namespace if namespace is not None else str(metadata.get("namespace") or ""),
        object=None if new is DELETED else new,
        old=old,
    )
    return AdmissionChain(settings or Settings()).review(attributes, world if world is not None else a_world())


def refusal(new, old=None, **how) -> str:
    """Why it was refused; empty when it was not."""
    return review(new, old, **how).denial
