"""Extended resources that are only requested get their request as the limit, with a warning."""

import pytest
from admission_builders import KINDS, a_job, a_task, review

from volcano.api import flow

GPU = "nvidia.com/gpu"


def template(**resources):
    containers = [{"name": "main", "image": "busybox", "resources": resources}]
    return {"spec": {"containers": containers, "initContainers": [{"name": "init", "image": "busybox"}]}}


def a_gpu_task(**more):
    return a_task(template=template(requests={"cpu": "1", GPU: 2, "kubernetes.io/batteries": "1"}, **more))


def limits(task):
    return task["template"]["spec"]["containers"][0]["resources"]["limits"]


def test_a_job_that_only_requests_a_gpu_gets_the_limit_and_a_warning():
    job = a_job(a_gpu_task())

    outcome = review(job)

    assert outcome.is_allowed, outcome.denial
    assert limits(outcome.object["spec"]["tasks"][0]) == {GPU: 2}
    (warning,) = outcome.warnings
    assert warning.startswith(f"spec.tasks[0].template.spec.containers[0].resources.limits[{GPU}]: ")
    assert "limits" not in job["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["resources"]


def test_limits_that_are_there_stay_and_others_are_added():
    outcome = review(a_job(a_gpu_task(limits={"cpu": "2"})))

    assert limits(outcome.object["spec"]["tasks"][0]) == {"cpu": "2", GPU: 2}


def test_a_limit_that_is_not_the_request_is_refused_as_before():
    outcome = review(a_job(a_gpu_task(limits={GPU: 3})))

    assert not outcome.is_allowed
    assert outcome.warnings == ()


@pytest.mark.parametrize(
    "task", [None, 3, {"template": 5}, {"template": {"spec": {"containers": [7, {"resources": 1}]}}}]
)
def test_what_is_not_a_task_is_left_to_validation(task):
    assert review({"kind": "Job", "metadata": {"name": "j"}, "spec": {"tasks": [task]}}).warnings == ()


def test_a_cron_job_and_a_job_template_get_the_limit_too(monkeypatch):
    monkeypatch.setitem(KINDS, "JobTemplate", flow.JobTemplate)
    spec = a_job(a_gpu_task())["spec"]
    cron = {"kind": "CronJob", "metadata": {"name": "c"}, "spec": {"schedule": "@daily", "jobTemplate": {"spec": spec}}}

    for obj, place in (
        (cron, "spec.jobTemplate.spec"),
        ({"kind": "JobTemplate", "metadata": {"name": "t"}, "spec": spec}, "spec"),
    ):
        outcome = review(obj)

        assert outcome.is_allowed, outcome.denial
        holder = outcome.object
        for name in place.split("."):
            holder = holder[name]
        assert limits(holder["tasks"][0]) == {GPU: 2}
        assert outcome.warnings[0].startswith(f"{place}.tasks[0].template.spec.containers[0]")
