"""Admission on a real API server, once as the webhook of the chart and once as policies alone: the same answers."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.running_server import Answer, Client
from volcano.admission.policies import policy_manifests
from volcano.app.deployment.values import Values
from volcano.app.deployment.workloads import SERVICE, webhooks

from .components import NAMESPACE, Components, apply, discover, path_of, wait_for
from .control_plane import ControlPlane, free_port

TASK = {"name": "t", "replicas": 1, "template": {"spec": {"containers": [{"name": "c", "image": "busybox"}]}}}
SERVICES = f"/api/v1/namespaces/{NAMESPACE}/services/"
QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"


def job(name: str = "subject", **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": name}, "spec": {"tasks": [TASK], **spec}}


def jobs(namespace: str) -> str:
    return f"/apis/batch.volcano.sh/v1alpha1/namespaces/{namespace}/jobs"


def remove(api: Client, bodies: list[dict[str, Any]]) -> None:
    plurals = discover(api)
    for body in bodies:
        api.delete(f"{path_of(body, plurals)}/{body['metadata']['name']}")


@pytest.fixture(scope="module", params=["webhook", "policies"])
def mode(request: pytest.FixtureRequest, running: Components, plane: ControlPlane, api: Client, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Admission is at work."""
    service = api.get(SERVICES + SERVICE).body
    if request.param == "policies":
        bodies = policy_manifests()
        apply(api, bodies)
    else:
        bodies = serve_webhook(running, api, tmp_path_factory.mktemp("webhook"))
    path = jobs("default")
    wait_for(lambda: refused(api.create(path, job("probe", tasks=[TASK, TASK]), query={"dryRun": "All"})), why="admission works")
    wait_for(lambda: api.create(path, job("probe"), query={"dryRun": "All"}).body.get("spec", {}).get("schedulerName") == "volcano")
    yield request.param
    remove(api, bodies)
    if request.param == "webhook":
        api.delete(SERVICES + SERVICE)
        kept = {key: service["metadata"][key] for key in ("name", "labels", "annotations") if key in service["metadata"]}
        spec = {key: service["spec"][key] for key in ("type", "selector", "ports")}
        assert api.create(SERVICES.rstrip("/"), {**service, "metadata": kept, "spec": spec}).status == 201
    wait_for(lambda: not refused(api.create(path, job("probe", tasks=[TASK, TASK]), query={"dryRun": "All"})), why="it is off")


def serve_webhook(running: Components, api: Client, folder: Path) -> list[dict[str, Any]]:
    """As in a cluster: the certificate job, then the webhook with its files, reached through its Service."""
    made = running.start("webhook-certificates", "--kubeconfig", str(running.account("volcano-admission-init")))
    assert made.process.wait(60) == 0, made.log
    secret = api.get(f"/api/v1/namespaces/{NAMESPACE}/secrets/volcano-admission-secret").body
    for name, content in secret["data"].items():
        (folder / name).write_bytes(base64.b64decode(content))
    port = free_port()
    # There is no pod network here: the service's name leads to this machine
    api.delete(SERVICES + SERVICE)
    made = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": SERVICE}, "spec": {"type": "ExternalName", "externalName": "localhost"}}
    assert api.create(SERVICES.rstrip("/"), made).status == 201
    bodies = list(webhooks(Values()))
    for body in bodies:
        for entry in body["webhooks"]:
            entry["clientConfig"]["service"]["port"] = port
    apply(api, bodies)
    running.webhook(
        "--port", str(port), "--tls-cert-file", str(folder / "tls.crt"),
        "--tls-private-key-file", str(folder / "tls.key"), "--ca-cert-file", str(folder / "ca.crt"),
    )  # fmt: skip
    return bodies


def refused(answer: Answer) -> bool:
    return answer.status >= 400 and "denied" in answer.body["message"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (job(tasks=[TASK, TASK]), "duplicated task name"),
        (job(minAvailable=3), "'minAvailable' should not be greater than total replicas"),
        (job(tasks=[{**TASK, "minAvailable": 2}]), "'minAvailable' is greater than 'replicas'"),
        (job(volumes=[{"mountPath": "/a"}]), "either VolumeClaim or VolumeClaimName must be specified"),
        (job(policies=[{"event": "PodFailed", "action": "AbortJob"}, {"event": "PodFailed", "action": "RestartJob"}]), "duplicate"),
        (job(policies=[{"event": "PodFailed", "exitCode": 3, "action": "AbortJob"}]), "event and exitCode simultaneously"),
        (job(policies=[{"exitCode": 0, "action": "AbortJob"}]), "0 is not a valid error code"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_job_that_makes_no_sense_is_refused(mode: str, api: Client, namespace: str, body: dict[str, Any], words: str):
    answer = api.create(jobs(namespace), body)

    assert refused(answer), answer
    assert words in answer.body["message"]
    assert api.get(jobs(namespace)).body["items"] == []


def test_a_job_gets_its_defaults(mode: str, api: Client, namespace: str):
    answer = api.create(jobs(namespace), job(tasks=[TASK, {**TASK, "name": "u", "replicas": 2}]), query={"dryRun": "All"})

    assert answer.status == 201, answer
    spec = answer.body["spec"]
    assert (spec["queue"], spec["schedulerName"], spec["maxRetry"], spec["minAvailable"]) == ("default", "volcano", 3, 3)


def test_a_jobs_tasks_stay_as_many(mode: str, api: Client, namespace: str):
    assert api.create(jobs(namespace), job(schedulerName="nobody")).status == 201

    answer = api.merge(f"{jobs(namespace)}/subject", {"spec": {"tasks": [TASK, {**TASK, "name": "u"}]}})

    assert refused(answer), answer
    assert "job updates may not add or remove tasks" in answer.body["message"]


def test_the_default_queue_cannot_be_deleted(mode: str, api: Client):
    answer = api.delete(f"{QUEUES}/default")

    assert refused(answer), answer


def test_only_the_webhook_sees_other_objects(mode: str, api: Client, namespace: str):
    answer = api.create(jobs(namespace), job(queue="missing"), query={"dryRun": "All"})

    assert refused(answer) == (mode == "webhook"), answer
