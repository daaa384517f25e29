"""Jobs submitted from Python run as real processes; their logs, their end and their failure come back."""

import pytest

from volcano.api.errors import AlreadyExists
from volcano.machinery.clock import SystemClock, wait_blocking
from volcano.sdk import ClusterClient, Job, JobFailed, JobTask

from .real_system import running_up


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory):
    with running_up(tmp_path_factory.mktemp("sdk")) as up:
        yield str(up.data / "kubeconfig")


def test_a_job_is_submitted_waited_for_and_read(kubeconfig):
    phases = []
    running = Job("hello", [JobTask("say", ["echo", "hello"], replicas=2)]).submit(kubeconfig=kubeconfig)

    status = running.wait(seconds=90, on_change=lambda status: phases.append(status.state.phase))

    assert status.succeeded == 2
    assert phases[-1] == "Completed"
    assert running.logs() == {"hello-say-0": "hello\n", "hello-say-1": "hello\n"}
    assert running.logs(task="other") == {}
    assert "hello-say-0" in running._repr_html_()
    assert [job.name for job in ClusterClient(kubeconfig=kubeconfig).jobs()] == ["hello"]


def test_a_job_that_fails_says_so(kubeconfig):
    running = Job("bad", [JobTask("main", ["false"])], max_retry=1).submit(kubeconfig=kubeconfig)

    with pytest.raises(JobFailed, match="default/bad is Failed"):
        running.wait(seconds=90)
    with pytest.raises(AlreadyExists, match="choose another name"):
        Job("bad", [JobTask("main", ["false"])]).submit(kubeconfig=kubeconfig)


def test_a_job_is_suspended_resumed_and_deleted(kubeconfig):
    running = Job("long", [JobTask("main", ["sleep", "600"])]).submit(kubeconfig=kubeconfig)
    running.suspend()
    with pytest.raises(JobFailed, match="Aborted"):
        running.wait(seconds=90)
    running.resume()
    _until(lambda: running.phase != "Aborted")

    with pytest.raises(TimeoutError):
        running.wait(seconds=0)
    running.delete()


def _until(condition, seconds=60):
    clock = SystemClock()
    end = clock.monotonic() + seconds
    while not condition():
        assert clock.monotonic() < end
        wait_blocking(0.1)


def test_queues_are_read_with_their_types(kubeconfig):
    names = {queue.name: queue.spec.weight for queue in ClusterClient(kubeconfig=kubeconfig).queues()}

    assert names["default"] == 1
