"""The chart's rights are enough for every component, and nothing beyond them is possible."""

from __future__ import annotations

from typing import Any

import pytest

from tests.running_server import Client
from tests.stories.builders import a_job, a_task
from volcano.api.batch import Job
from volcano.install import rbac

from .components import Components, wait_for
from .control_plane import ControlPlane
from .ledger import audited
from .real_system import RealSystem

ACCOUNT = "system:serviceaccount:volcano-system:volcano-"


def as_account(running: Components, name: str) -> Client:
    return Client(running.account(f"volcano-{name}"))


def may(api: Client, account: str, verb: str, group: str, resource: str) -> bool:
    plural, _, subresource = resource.partition("/")
    attributes = {"verb": verb, "group": group, "resource": plural, "subresource": subresource, "namespace": "default"}
    body = {"spec": {"user": f"{ACCOUNT}{account}", "resourceAttributes": attributes}}
    return bool(api.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", body).body["status"]["allowed"])


@pytest.mark.parametrize(
    ("account", "table"),
    [("scheduler", rbac.SCHEDULER), ("controllers", rbac.CONTROLLERS), ("admission", rbac.ADMISSION)],
)
def test_every_right_of_the_table_is_given(installed: str, api: Client, account: str, table: rbac.Rules):
    for group, resources, verbs in table:
        for resource in resources.split():
            for verb in verbs.split():
                assert may(api, account, verb, group, resource), (verb, group, resource)


@pytest.mark.parametrize(
    ("account", "verb", "group", "resource"),
    [
        ("scheduler", "get", "", "secrets"),
        ("scheduler", "create", "", "pods"),
        ("scheduler", "delete", "", "nodes"),
        ("scheduler", "patch", "batch.volcano.sh", "jobs"),
        ("scheduler", "delete", "scheduling.volcano.sh", "queues"),
        ("controllers", "create", "", "pods/binding"),
        ("controllers", "create", "", "pods/exec"),
        ("controllers", "list", "", "secrets"),
        ("controllers", "patch", "", "nodes"),
        ("controllers", "create", "rbac.authorization.k8s.io", "clusterrolebindings"),
        ("admission", "get", "", "secrets"),
        ("admission", "create", "", "pods"),
        ("admission", "update", "admissionregistration.k8s.io", "validatingwebhookconfigurations"),
        ("admission-init", "list", "", "secrets"),
        ("admission-init", "get", "", "secrets"),
    ],
)
def test_a_verb_outside_is_denied(installed: str, api: Client, account: str, verb: str, group: str, resource: str):
    assert not may(api, account, verb, group, resource)


def test_a_denied_request_is_refused_by_the_server(running: Components, api: Client):
    scheduler = as_account(running, "scheduler")

    refused = scheduler.get("/api/v1/namespaces/default/secrets/any")

    assert (refused.status, refused.body["reason"]) == (403, "Forbidden")
    assert scheduler.get("/api/v1/pods", limit=1).status == 200


async def test_a_whole_life_asks_for_nothing_that_is_refused(system: RealSystem, plane: ControlPlane):
    plugins: dict[str, Any] = {"svc": [], "ssh": [], "env": []}
    await system.apply(a_job("demo", a_task(replicas=2, lasts="1s"), plugins=plugins, ttlSecondsAfterFinished=1))
    await system.until(lambda: system.get(Job, "demo") is None)

    assert refusals(plane) == set()


def refusals(plane: ControlPlane) -> set[tuple[str, ...]]:
    """What components of the suite so far were not allowed to do."""
    found = set()
    for entry in audited(plane):
        user, where = entry["user"]["username"], entry.get("objectRef", {})
        forbidden = entry.get("annotations", {}).get("authorization.k8s.io/decision") == "forbid"
        # What the tests here do on purpose comes from Python's own client
        if forbidden and user.startswith(ACCOUNT) and entry.get("userAgent", "").startswith("vc-"):
            found.add(
                (
                    user,
                    entry["verb"],
                    where.get("apiGroup", ""),
                    where.get("resource", ""),
                    where.get("subresource", ""),
                )
            )
    return found


def test_leases_of_others_are_out_of_reach(running: Components, api: Client):
    scheduler, controllers = as_account(running, "scheduler"), as_account(running, "controllers")
    path = "/apis/coordination.k8s.io/v1/namespaces/volcano-system/leases"
    body = {"metadata": {"name": "vc-controller-manager"}, "spec": {}}
    api.create(path, body)

    assert scheduler.get(f"{path}/vc-controller-manager").status == 403
    assert wait_for(lambda: controllers.get(f"{path}/vc-controller-manager").status == 200)
