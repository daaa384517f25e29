"""The levels of a namespace's labels, at the API server: refusals, warnings, labels that are no levels."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.unit.embedded.apiserver.admitting.pod_security.pods import SAFE, a_container
from volcano.embedded.apiserver.server import ApiServer
from volcano.embedded.apiserver.store.memory_store import MemoryStore
from volcano.machinery.clock import SystemClock
from volcano.machinery.transport import Request, User

LABEL = "pod-security.kubernetes.io/"
ADMIN = User("admin", ("system:masters",))
FOUR_FAULTS = (
    'allowPrivilegeEscalation != false (container "c" must set securityContext.allowPrivilegeEscalation=false), '
    'unrestricted capabilities (container "c" must set securityContext.capabilities.drop=["ALL"]), '
    'runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true), '
    'seccompProfile (pod or container "c" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")'
)


class Server:
    """An API server with one namespace that has these labels."""

    def __init__(self) -> None:
        self._server = ApiServer(MemoryStore(), clock=SystemClock())

    async def open(self, **labels: str) -> Server:
        await self._server.start()
        named = {LABEL + name.replace("_", "-"): value for name, value in labels.items()}
        status, _, _ = await self.send("POST", "/api/v1/namespaces", {"metadata": {"name": "team", "labels": named}})
        assert status == 201
        return self

    async def send(self, method: str, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any], str]:
        """Status, body and warnings."""
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        request = Request(method, path, headers={"content-type": kind}, body=msgspec.json.encode(body), user=ADMIN)
        answer = await self._server.handle(request)
        return answer.status, msgspec.json.decode(answer.body), answer.headers.get("warning", "").replace('\\"', '"')

    async def create_pod(self, spec: dict[str, Any], name: str = "p") -> tuple[int, dict[str, Any], str]:
        return await self.send("POST", "/api/v1/namespaces/team/pods", {"metadata": {"name": name}, "spec": spec})


def a_spec(security: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"containers": [a_container("c", security)], **more}


async def test_a_namespace_without_labels_allows_everything():
    server = await Server().open()

    assert (await server.create_pod(a_spec({"privileged": True}, hostPID=True)))[0] == 201


async def test_enforce_refuses_a_pod_with_all_its_violations():
    server = await Server().open(enforce="restricted")

    status, answer, _ = await server.create_pod(a_spec())

    assert (status, answer["reason"]) == (403, "Forbidden")
    assert answer["message"] == f'pods "p" is forbidden: violates PodSecurity "restricted:latest": {FOUR_FAULTS}'


async def test_enforce_allows_what_the_level_allows():
    server = await Server().open(enforce="restricted", enforce_version="v1.33")

    assert (await server.create_pod(a_spec(SAFE)))[0] == 201


async def test_the_message_names_the_version_of_the_label():
    server = await Server().open(enforce="baseline", enforce_version="v1.24")

    _, answer, _ = await server.create_pod(a_spec(hostPID=True))

    assert answer["message"].endswith('violates PodSecurity "baseline:v1.24": host namespaces (hostPID=true)')


async def test_warn_warns_about_pods_and_templates_and_admits_them():
    server = await Server().open(warn="restricted")
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": a_spec()}
    deployment = {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": labels}, "template": template}}

    for status, _, warning in (
        await server.create_pod(a_spec()),
        await server.send("POST", "/apis/apps/v1/namespaces/team/deployments", deployment),
    ):
        assert status == 201
        assert f'would violate PodSecurity "restricted:latest": {FOUR_FAULTS}' in warning


async def test_templates_are_not_refused():
    server = await Server().open(enforce="restricted")
    template = {"spec": a_spec(restartPolicy="Never")}

    job = {"metadata": {"name": "j"}, "spec": {"template": template}}
    status, _, warning = await server.send("POST", "/apis/batch/v1/namespaces/team/jobs", job)

    assert (status, warning) == (201, "")


async def test_an_update_that_changes_no_image_is_not_judged_again():
    server = await Server().open()
    await server.create_pod(a_spec())
    label = {"metadata": {"labels": {LABEL + "enforce": "restricted"}}}
    assert (await server.send("PATCH", "/api/v1/namespaces/team", label))[0] == 200
    pod = "/api/v1/namespaces/team/pods/p"

    labelled, _, _ = await server.send("PATCH", pod, {"metadata": {"labels": {"a": "b"}}})
    changed, _, _ = await server.send("PATCH", pod, {"spec": {"containers": [a_container("c", image="other")]}})

    assert (labelled, changed) == (200, 403)


@pytest.mark.parametrize(
    ("label", "value", "why"),
    [
        ("enforce", "strict", "must be one of privileged, baseline, restricted"),
        ("audit", "", "must be one of privileged, baseline, restricted"),
        ("warn-version", "1.30", 'must be "latest" or "v1.x"'),
    ],
)
async def test_a_label_that_is_no_level_or_version_is_refused(label: str, value: str, why: str):
    server = await Server().open()
    body = {"metadata": {"name": "other", "labels": {LABEL + label: value}}}

    status, answer, _ = await server.send("POST", "/api/v1/namespaces", body)

    assert status == 422
    assert f'metadata.labels[{LABEL}{label}]: Invalid value: "{value}": {why}' in answer["message"]
