"""How a job's end is worded: what was ended with a completed job has not failed."""

import io

import pytest

from volcano.api.batch import Job
from volcano.api.core import Pod
from volcano.api.decode import decode_object
from volcano.cli.live.endings import ending, was_ended_with
from volcano.cli.live.run_view import PlainView


def a_job(phase="Completed", **tasks):
    spec = {"tasks": [{"name": name, "replicas": count} for name, count in tasks.items()]}
    status = {"state": {"phase": phase}, "succeeded": 1}
    return decode_object(Job, {"metadata": {"name": "mpi", "namespace": "ns"}, "spec": spec, "status": status})


def a_pod(task, number=0, phase="Succeeded", code=0):
    metadata = {"name": f"mpi-{task}-{number}", "namespace": "ns", "annotations": {"volcano.sh/task-spec": task}}
    statuses = [{"name": "c", "state": {"terminated": {"exitCode": code}}}]
    return decode_object(Pod, {"metadata": metadata, "status": {"phase": phase, "containerStatuses": statuses}})


def test_the_task_that_completed_the_job_and_those_that_ended_with_it_are_named():
    pods = [a_pod("master"), a_pod("worker", 0, "Failed", 143), a_pod("worker", 1, "Failed", 137)]

    assert ending(a_job(master=1, worker=2), pods) == "master succeeded; 2 workers ended with it"
    assert ending(a_job(master=1, worker=1), pods[:2]) == "master succeeded; 1 worker ended with it"


def test_otherwise_the_pods_that_succeeded_are_counted():
    assert ending(a_job(worker=1), [a_pod("worker")]) == "1 of 1 pods succeeded"
    assert ending(a_job("Failed", master=1, worker=2), [a_pod("master")]) == "1 of 3 pods succeeded"


@pytest.mark.parametrize(
    ("phase", "code", "ended"),
    [("Completed", 143, True), ("Completing", 137, True), ("Completed", 3, False), ("Restarting", 143, False)],
)
def test_only_a_stop_in_a_completed_job_is_an_end_with_it(phase, code, ended):
    assert was_ended_with(a_job(phase, worker=1), a_pod("worker", 0, "Failed", code)) is ended


def test_the_plain_view_says_so():
    out = io.StringIO()
    view = PlainView(out)

    view.pod_changed(a_pod("worker", 0, "Failed", 143), a_job(worker=1))
    view.pod_changed(a_pod("worker", 1, "Failed", 3), a_job(worker=1))

    assert out.getvalue() == "pod/mpi-worker-0 ended with the job\npod/mpi-worker-1 Failed (exit code 3)\n"
