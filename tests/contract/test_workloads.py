"""Kinds with a pod template: the restart policies that each of them has a use for."""

from __future__ import annotations

from typing import Any

import pytest

from tests.running_server import Client

BATCH = "/apis/batch/v1/namespaces"


def template(policy: str | None) -> dict[str, Any]:
    spec: dict[str, Any] = {"containers": [{"name": "c", "image": "busybox"}]}
    return {"spec": spec if policy is None else {**spec, "restartPolicy": policy}}


def a_job(policy: str | None) -> dict[str, Any]:
    return {"metadata": {"name": "work"}, "spec": {"template": template(policy)}}


def a_cron_job(policy: str | None) -> dict[str, Any]:
    job = {"spec": {"template": template(policy)}}
    return {"metadata": {"name": "work"}, "spec": {"schedule": "0 0 1 1 *", "jobTemplate": job}}


@pytest.mark.parametrize("policy", [None, "Always"])
def test_what_runs_to_completion_must_say_how_it_restarts(api: Client, namespace: str, policy: str | None):
    job = api.create(f"{BATCH}/{namespace}/jobs", a_job(policy))
    cron = api.create(f"{BATCH}/{namespace}/cronjobs", a_cron_job(policy))

    assert (job.status, cron.status) == (422, 422)
    assert job.body["message"] == (
        'Job.batch "work" is invalid: spec.template.spec.restartPolicy: Required value: '
        'valid values: "OnFailure", "Never"'
    )
    assert cron.body["message"] == (
        'CronJob.batch "work" is invalid: spec.jobTemplate.spec.template.spec.restartPolicy: Required value: '
        'valid values: "OnFailure", "Never"'
    )


@pytest.mark.parametrize("policy", ["Never", "OnFailure"])
def test_what_runs_to_completion_may_restart_on_failure_or_never(api: Client, namespace: str, policy: str):
    assert api.create(f"{BATCH}/{namespace}/jobs", a_job(policy)).status == 201
    assert api.create(f"{BATCH}/{namespace}/cronjobs", a_cron_job(policy)).status == 201


def test_what_runs_for_ever_always_restarts(api: Client, namespace: str):
    labels = {"app": "web"}
    pod = {"metadata": {"labels": labels}, **template("Never")}
    body = {"metadata": {"name": "web"}, "spec": {"selector": {"matchLabels": labels}, "template": pod}}

    answer = api.create(f"/apis/apps/v1/namespaces/{namespace}/deployments", body)

    assert answer.status == 422
    assert answer.body["message"] == (
        'Deployment.apps "web" is invalid: spec.template.spec.restartPolicy: Unsupported value: "Never": '
        'supported values: "Always"'
    )
