"""The controllers' metrics, read off what changes."""

from __future__ import annotations

from datetime import timedelta

from tests.stories.builders import a_job as a_story_job
from tests.stories.builders import a_task
from volcano.api.batch import Job
from volcano.api.core import Pod
from volcano.api.flow import JobFlow
from volcano.api.scheduling import PodGroup, Queue
from volcano.controllers.queue import QueueController
from volcano.controllers.service.job_metrics import ControllerMetrics
from volcano.testing.pure_world import START, PureWorld
from volcano.testing.system import on_virtual_time


def a_job(phase: str = "Running") -> dict:
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "j", "uid": "u", "creationTimestamp": START.isoformat()},
        "spec": {"queue": "gold"},
        "status": {"state": {"phase": phase}},
    }


def followed(*objects: dict) -> tuple[PureWorld, ControllerMetrics]:
    world = PureWorld(*objects, controllers=[QueueController()]).settle()
    metrics = ControllerMetrics()
    metrics.follow(world.mirror)
    return world, metrics


def value(metrics: ControllerMetrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(f"volcano_{name}", labels)


def test_jobs_that_complete_and_fail_are_counted_until_they_are_gone():
    world, metrics = followed(a_job())

    world.change(Job, "j", {"status": {"state": {"phase": "Completed"}}})
    assert value(metrics, "job_completed_phase_count", job_name="default/j", queue_name="gold") == 1

    world.delete(Job, "j")
    assert value(metrics, "job_completed_phase_count", job_name="default/j", queue_name="gold") is None


def test_jobs_that_had_finished_before_are_not_counted():
    _, metrics = followed(a_job("Failed"))

    assert value(metrics, "job_failed_phase_count", job_name="default/j", queue_name="gold") is None


def test_podgroups_are_counted_by_queue():
    queue = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "gold"},
        "spec": {"parent": "root"},
    }
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "g"},
        "spec": {"queue": "gold"},
        "status": {"phase": "Running"},
    }
    world, metrics = followed(queue, group)
    assert value(metrics, "queue_pod_group_running_count", queue_name="gold") == 1

    world.delete(PodGroup, "g")
    world.advance(timedelta(seconds=2))
    assert value(metrics, "queue_pod_group_running_count", queue_name="gold") == 0

    world.delete(Queue, "gold")
    assert value(metrics, "queue_pod_group_running_count", queue_name="gold") is None


def test_flows_are_counted_by_namespace():
    flow = {
        "apiVersion": "flow.volcano.sh/v1alpha1",
        "kind": "JobFlow",
        "metadata": {"name": "f"},
        "status": {"state": {"phase": "Running"}},
    }
    world, metrics = followed(flow)

    world.change(JobFlow, "f", {"status": {"state": {"phase": "Succeed"}}})

    assert value(metrics, "jobflow_succeed_phase_count", jobflow_namespace="default") == 1


def test_how_long_after_its_job_a_pod_was_made():
    world, metrics = followed(a_job())
    owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j", "uid": "u", "controller": True}
    created = (START + timedelta(seconds=2)).isoformat()

    world.put(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "creationTimestamp": created, "ownerReferences": [owner]},
        }
    )

    assert world.get(Pod, "p") is not None
    name = "controller_job_to_pod_creation_latency_milliseconds"
    assert value(metrics, f"{name}_count") == 1
    assert value(metrics, f"{name}_sum") == 2000


def test_the_embedded_system_tells_its_metrics_through_the_service_proxy():
    @on_virtual_time
    async def story(system):
        from volcano.machinery.transport import Request

        await system.apply(a_story_job("gang", a_task(replicas=2, lasts="10s")))
        await system.until(lambda: system.phase("gang") == "Completed")
        path = "/api/v1/namespaces/volcano-system/services/volcano-controllers-service:8081/proxy"
        page = (await system.client.raw(Request("GET", f"{path}/metrics"))).body.decode()

        assert 'volcano_job_completed_phase_count{job_name="default/gang",queue_name="default"} 1.0' in page
        assert "volcano_controller_job_to_pod_creation_latency_milliseconds_count" in page
        assert 'volcano_queue_pod_group_running_count{queue_name="default"}' in page
