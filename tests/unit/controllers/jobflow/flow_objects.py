"""Objects for the tests of flows, and a stand-in for the job controller that moves Jobs along."""

from __future__ import annotations

from volcano.api.batch import Job
from volcano.controllers.jobflow import JobFlowController, JobTemplateController
from volcano.testing.pure_world import PureWorld


def a_template(name: str, *, replicas: int = 1, **spec) -> dict:
    container = {"name": "main", "image": "busybox", "command": ["true"]}
    task = {"name": "work", "replicas": replicas, "template": {"spec": {"containers": [container]}}}
    return {
        "apiVersion": "flow.volcano.sh/v1alpha1",
        "kind": "JobTemplate",
        "metadata": {"name": name},
        "spec": {"queue": "default", "minAvailable": replicas, "maxRetry": 3, "tasks": [task], **spec},
    }


def a_step(name: str, *targets: str, probe: dict | None = None, patch: dict | None = None) -> dict:
    step: dict = {"name": name}
    if targets or probe:
        step["dependsOn"] = {"targets": list(targets), **({"probe": probe} if probe else {})}
    if patch is not None:
        step["patch"] = {"jobSpec": patch}
    return step


def a_flow(*steps: dict, name: str = "flow", retain: str = "") -> dict:
    return {
        "apiVersion": "flow.volcano.sh/v1alpha1",
        "kind": "JobFlow",
        "metadata": {"name": name},
        "spec": {"flows": list(steps), **({"jobRetainPolicy": retain} if retain else {})},
    }


def a_world(*objects: dict, **settings) -> PureWorld:
    return PureWorld(*objects, controllers=[JobFlowController(**settings), JobTemplateController()]).settle()


def jobs(world: PureWorld) -> dict[str, str]:
    return {job.name: job.status.state.phase for job in world.all(Job)}


def set_phase(world: PureWorld, name: str, phase: str, **status) -> None:
    world.change(Job, name, {"status": {"state": {"phase": phase}, **status}})
    world.settle()
