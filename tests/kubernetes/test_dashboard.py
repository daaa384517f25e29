"""`volcano dashboard` beside a real API server, with the chart's rights: everybody sees and does what their token may."""

from __future__ import annotations

import http.client
import re
import ssl
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
import yaml

from tests.oidc_provider import OidcProvider
from tests.running_server import Client
from tests.stories.builders import a_job, a_task
from tests.web_visitor import WebVisitor
from volcano.install.installation import installation
from volcano.install.values import Values

from .components import Components, Process, apply, wait_for
from .control_plane import ControlPlane
from .ledger import audited

RBAC = "/apis/rbac.authorization.k8s.io/v1"
JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/{}/jobs"
ACCOUNT = "system:serviceaccount:volcano-system:volcano-dashboard"


def address(process: Process) -> str:
    process.wait_for_word("dashboard: http")
    found = re.search(r"dashboard: (\S+)", process.log)
    assert found is not None
    return found[1]


@pytest.fixture(scope="module")
def dashboard(running: Components, api: Client, provider: OidcProvider) -> Iterator[str]:
    """With the account of the chart, and nothing beyond it."""
    bodies = installation(Values({"dashboard.enabled": True}))
    rights = [
        body
        for body in bodies
        if body["metadata"]["name"] == "volcano-dashboard"
        and body["kind"] in ("ServiceAccount", "ClusterRole", "ClusterRoleBinding")
    ]
    assert len(rights) == 3
    apply(api, rights)
    kubeconfig = running.account("volcano-dashboard")
    words = ["--oidc-issuer-url", provider.issuer, "--oidc-client-id", provider.client_id]
    words += ["--oidc-ca-file", str(provider.ca_file), "--kubeconfig", str(kubeconfig)]
    process = running.start("dashboard", "--listen-address", "127.0.0.1:0", *words)
    yield address(process)
    process.stop()


def token_of(api: Client, namespace: str, name: str, cluster_role: str) -> str:
    """Of a ServiceAccount that has a role in its own namespace."""
    account = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    api.create(account, {"metadata": {"name": name}})
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": cluster_role},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
    }
    assert api.create(f"{RBAC}/namespaces/{namespace}/rolebindings", binding).status == 201
    return str(api.create(f"{account}/{name}/token", {"spec": {}}).body["status"]["token"])


def administrator(running: Components) -> str:
    return str(yaml.safe_load(running.administrator("").read_text())["users"][0]["user"]["token"])


def signed_in(place: str, token: str) -> WebVisitor:
    visitor = WebVisitor(place)
    assert visitor.sign_in(token).status == 303
    return visitor


def test_a_token_that_the_server_does_not_accept_signs_nobody_in(dashboard: str):
    visitor = WebVisitor(dashboard)

    answer = visitor.sign_in("eyJhbGciOiJub25lIn0.e30.")

    assert answer.status == 401 and b"not accepted" in answer.raw
    assert visitor.get("/jobs").status == 303


def test_everybody_sees_and_does_what_their_token_may(
    dashboard: str, running: Components, api: Client, namespace: str, plane: ControlPlane
):
    other = f"{namespace}-other"
    api.create("/api/v1/namespaces", {"metadata": {"name": other}})
    for place, name in ((namespace, "mine"), (other, "theirs")):
        assert api.create(JOBS.format(place), a_job(name, a_task(replicas=2))).status == 201
    wait_for(lambda: phase(api, namespace, "mine") == "Running", why="the job runs")
    reader = signed_in(dashboard, token_of(api, namespace, "reader", "vcjob-viewer-role"))
    editor = signed_in(dashboard, token_of(api, namespace, "editor", "vcjob-editor-role"))
    whole = signed_in(dashboard, administrator(running))

    # Reading: the whole cluster, or one namespace and nothing else.
    seen = wait_for(lambda: {"mine", "theirs"} <= names(whole), why="the administrator sees both")
    assert seen and names(reader) == names(editor) == {"mine"}
    assert whole.json("/api/v1/nodes")["total"] >= 10 and reader.json("/api/v1/nodes")["total"] == 0
    assert reader.get(f"/jobs/{other}/theirs").status == reader.get(f"/jobs/{other}/nothing").status == 403
    assert "You may not list pods" in reader.text(f"/jobs/{namespace}/mine")
    assert {pod["state"] for pod in whole.json(f"/api/v1/jobs/{namespace}/mine")["bars"]} == {"Running"}
    assert "theirs" not in reader.text("/") and reader.json("/api/v1/queues")["queues"] == []

    # Writing: in the name of the person, refused in the server's words.
    refused = reader.write(f"/jobs/{namespace}/mine/do/delete")
    assert refused.status == 403 and b"reader" in refused.raw and b"cannot delete" in refused.raw
    assert editor.write(f"/jobs/{other}/theirs/do/suspend").status == 403
    assert editor.write(f"/jobs/{namespace}/mine/do/suspend").status == 303
    wait_for(lambda: phase(api, namespace, "mine") == "Aborted", why="the job is suspended")
    body = a_job("made", a_task())
    body["metadata"]["namespace"] = namespace
    assert editor.write("/submit", do="submit", text=yaml.safe_dump(body)).status == 303
    wait_for(lambda: phase(api, namespace, "made") == "Running", why="the submitted job runs")
    assert editor.write(f"/jobs/{namespace}/made/do/delete").status == 303
    wait_for(lambda: api.get(f"{JOBS.format(namespace)}/made").status == 404, why="the job is deleted")

    # The dashboard's own account only follows objects and asks who a token belongs to.
    asked = {
        (entry["verb"], entry["objectRef"]["resource"])
        for entry in audited(plane)
        if entry["user"]["username"] == ACCOUNT and "objectRef" in entry
    }
    assert {verb for verb, resource in asked if resource != "tokenreviews"} <= {"list", "watch"}
    assert ("create", "tokenreviews") in asked
    api.delete(f"/api/v1/namespaces/{other}")


def test_an_identity_provider_that_the_api_server_knows_signs_in(
    dashboard: str, api: Client, namespace: str, provider: OidcProvider
):
    assert api.create(JOBS.format(namespace), a_job("mine", a_task(cpu="1000"))).status == 201
    binding = {
        "metadata": {"name": "team"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "vcjob-viewer-role"},
        "subjects": [{"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "oidc:team"}],
    }
    assert api.create(f"{RBAC}/namespaces/{namespace}/rolebindings", binding).status == 201
    visitor, thief = WebVisitor(dashboard), WebVisitor(dashboard)

    begun = visitor.get("/login/oidc?next=%2Fjobs%3Fstate%3Dwaiting")
    back = redirected(provider, begun.headers["location"])
    stolen = thief.get(back)
    refused = visitor.get(back)  # a sign-in is tried once, whoever tries

    assert "SameSite=Lax" in begun.headers["set-cookie"] and "HttpOnly" in begun.headers["set-cookie"]
    assert stolen.status == refused.status == 401 and not thief.cookies
    begun = visitor.get("/login/oidc?next=%2Fjobs%3Fstate%3Dwaiting")
    done = visitor.get(redirected(provider, begun.headers["location"]))
    assert done.status == 200 and b'content="0;url=/jobs?state=waiting"' in done.raw
    assert "SameSite=Strict" in done.headers["set-cookie"]
    assert wait_for(lambda: names(visitor)) == {"mine"}
    assert "tina@example.com" in visitor.text("/jobs")
    answer = visitor.write(f"/jobs/{namespace}/mine/do/delete")
    assert answer.status == 403 and b"tina@example.com" in answer.raw


def test_a_token_that_only_the_provider_accepts_is_explained(dashboard: str, provider: OidcProvider):
    provider.planted["claims"] = {"email_verified": False}  # which this API server insists on
    try:
        visitor = WebVisitor(dashboard)
        begun = visitor.get("/login/oidc")
        answer = visitor.get(redirected(provider, begun.headers["location"]))
    finally:
        provider.planted.clear()

    assert answer.status == 401 and b"the API server does not accept its token" in answer.raw


def redirected(provider: OidcProvider, place: str) -> str:
    """The address of the dashboard that the provider sends a browser back to."""
    parts = urlsplit(place)
    context = ssl.create_default_context(cafile=str(provider.ca_file))
    connection = http.client.HTTPSConnection(parts.hostname or "", parts.port, context=context, timeout=30)
    connection.request("GET", f"{parts.path}?{parts.query}")
    answer = connection.getresponse()
    connection.close()
    back = urlsplit(answer.headers["location"])
    return f"{back.path}?{back.query}"


def names(visitor: WebVisitor) -> set[str]:
    return {row["name"] for row in visitor.json("/api/v1/jobs?size=100")["rows"]}


def phase(api: Client, namespace: str, name: str) -> str:
    body = api.get(f"{JOBS.format(namespace)}/{name}").body
    return str(((body.get("status") or {}).get("state") or {}).get("phase", ""))
