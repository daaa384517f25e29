"""Builders for stories: jobs, tasks, queues, commands, and the phases that a job went through."""

from __future__ import annotations

from datetime import timedelta

from volcano.api.batch import Job
from volcano.api.scheduling import Queue
from volcano.machinery.world import Change

DURATION = "simulation.volcano.sh/duration"
EXIT_CODE = "simulation.volcano.sh/exit-code"


def a_task(name="worker", *, replicas=1, lasts="", exits=0, cpu="1", policies=(), restart="Never", **more):
    annotations = {}
    if lasts:
        annotations[DURATION] = lasts
    if exits:
        annotations[EXIT_CODE] = str(exits)
    container = {"name": "main", "image": "any", "resources": {"requests": {"cpu": cpu}}}
    template = {"metadata": {"annotations": annotations}, "spec": {"restartPolicy": restart, "containers": [container]}}
    return {"name": name, "replicas": replicas, "template": template, "policies": list(policies), **more}


def a_job(name="demo", *tasks, minimum=None, policies=(), queue="default", **spec):
    tasks = tasks or (a_task(),)
    total = sum(task["replicas"] for task in tasks)
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "minAvailable": total if minimum is None else minimum,
            "schedulerName": "volcano",
            "queue": queue,
            "policies": list(policies),
            "tasks": list(tasks),
            **spec,
        },
    }


def policy(action, event="", **more):
    return {"action": action, **({"event": event} if event else {}), **more}


def a_command(job: Job, action: str):
    reference = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": job.name, "uid": job.uid}
    return {
        "apiVersion": "bus.volcano.sh/v1alpha1",
        "kind": "Command",
        "metadata": {"generateName": f"{job.name}-"},
        "target": reference,
        "action": action,
    }


def a_queue_command(queue: Queue, action: str):
    reference = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "name": queue.name, "uid": queue.uid}
    return {
        "apiVersion": "bus.volcano.sh/v1alpha1",
        "kind": "Command",
        "metadata": {"generateName": "c-"},
        "target": reference,
        "action": action,
    }


def a_pod(name, **spec):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "i"}], **spec},
    }


def a_queue(name, **spec):
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}, "spec": spec}


class Phases:
    """The phases a job went through, with its status at each."""

    def __init__(self, system, name="demo"):
        self.seen = []
        self._name = name
        system.mirror.listen(Job, self._changed)

    def _changed(self, change: Change[Job]):
        job = change.new
        if job is None or job.name != self._name:
            return
        phase = job.status.state.phase
        if phase and (not self.seen or self.seen[-1][0] != phase):
            self.seen.append((phase, job.status))
        elif phase:
            self.seen[-1] = (phase, job.status)

    @property
    def names(self):
        return [phase for phase, _ in self.seen]


MINUTE = timedelta(minutes=1)
