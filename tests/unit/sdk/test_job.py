"""A job written in Python: the manifest it makes, and what is refused before anything is sent."""

from __future__ import annotations

import pytest

from volcano.api.batch import Job as ApiJob
from volcano.api.decode import decode_object
from volcano.sdk import Job, JobError, JobTask


def test_a_job_makes_the_manifest_that_kubectl_would_take():
    task = JobTask("worker", ["python", "train.py"], replicas=4, cpu=0.5, memory="1Gi", gpu=1, env={"A": "1"})
    job = Job("train", [task], queue="research", running_estimate="2h", plugins={"svc": []}, max_retry=2)

    manifest = job.manifest()

    assert manifest["spec"]["minAvailable"] == 4
    container = manifest["spec"]["tasks"][0]["template"]["spec"]["containers"][0]
    assert container["resources"] == {
        "requests": {"cpu": "0.5", "memory": "1Gi", "nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "1"},
    }  # fmt: skip
    assert container["env"] == [{"name": "A", "value": "1"}]
    read = decode_object(ApiJob, manifest)
    assert (read.spec.queue, read.spec.running_estimate, read.spec.max_retry) == ("research", "2h", 2)


def test_fields_without_an_argument_are_passed_through():
    task = JobTask("main", ["true"], template={"nodeSelector": {"disk": "ssd"}})

    manifest = Job("one", [task], spec={"ttlSecondsAfterFinished": 60}).manifest()

    assert manifest["spec"]["ttlSecondsAfterFinished"] == 60
    assert manifest["spec"]["tasks"][0]["template"]["spec"]["nodeSelector"] == {"disk": "ssd"}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Job("Train", [JobTask("a", ["true"])]), "Job.name 'Train'"),
        (lambda: Job("train", []), "at least one task"),
        (lambda: Job("train", [JobTask("a", ["true"]), JobTask("a", ["true"])]), "two tasks are named a"),
        (lambda: JobTask("a", "python train.py"), "command is a list of words"),
        (lambda: JobTask("a", ["true"], replicas=-1), "replicas is -1"),
        (lambda: JobTask("a", ["true"], cpu="lots"), "cpu"),
        (lambda: Job("train", [JobTask("a", ["true"])], running_estimate="soon"), "running_estimate"),
    ],
)
def test_what_cannot_be_submitted_is_refused_with_the_argument(make, message):
    with pytest.raises(JobError, match=message):
        make()
