"""`volcano dashboard --kubeconfig` as a process of its own beside a real `volcano up`: everybody with their own token."""

from __future__ import annotations

import re
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.system.real_system import JOBS, VOLCANO, Up, environment, wait_until
from tests.web_visitor import WebVisitor

RBAC = "/apis/rbac.authorization.k8s.io/v1"


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    system = Up(tmp_path_factory.mktemp("up"), "--dashboard", "off", "--ephemeral", "--simulated-nodes", "3")
    system.start()
    yield system
    system.stop()


@pytest.fixture(scope="module")
def place(up: Up) -> Iterator[str]:
    words = ["dashboard", "--kubeconfig", str(up.data / "kubeconfig"), "--listen-address", "127.0.0.1:0"]
    process = subprocess.Popen(
        [*VOLCANO, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment(up.folder)
    )
    lines: list[str] = []
    assert process.stdout is not None
    reading = threading.Thread(target=lambda: lines.extend(iter(process.stdout.readline, "")), daemon=True)
    reading.start()
    wait_until(lambda: "dashboard: http" in "".join(lines) or process.poll() is not None, "it serves")
    found = re.search(r"dashboard: (\S+)", "".join(lines))
    assert found is not None, "".join(lines)
    yield found[1]
    process.terminate()
    assert process.wait(30) is not None


def job(name: str) -> dict[str, Any]:
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}
    task = {"name": "w", "replicas": 2, "template": {"spec": {"containers": [container]}}}
    return {"metadata": {"name": name}, "spec": {"minAvailable": 2, "tasks": [task]}}


def token_of(up: Up, name: str, role: str, namespace: str = "") -> str:
    """Of a ServiceAccount with a role in one namespace, or in all of them."""
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    up.api.create(accounts, {"metadata": {"name": name}})
    body = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}],
    }
    where = f"{RBAC}/namespaces/{namespace}/rolebindings" if namespace else f"{RBAC}/clusterrolebindings"
    assert up.api.create(where, body).status == 201
    return str(up.api.create(f"{accounts}/{name}/token", {"spec": {}}).body["status"]["token"])


def names(visitor: WebVisitor) -> set[str]:
    return {row["name"] for row in visitor.json("/api/v1/jobs")["rows"]}


def test_a_dashboard_of_another_process_shows_and_does_what_each_token_may(up: Up, place: str):
    up.api.create("/api/v1/namespaces", {"metadata": {"name": "team"}})
    assert up.api.create(JOBS, job("theirs")).status == 201
    assert up.api.create(JOBS.replace("default", "team"), job("mine")).status == 201
    wait_until(lambda: up.phase("theirs") == "Running", "the job runs")
    owner, reader, other = WebVisitor(place), WebVisitor(place), WebVisitor(place)

    assert other.sign_in("guess").status == 401 and other.get("/jobs").status == 303
    assert owner.sign_in(token_of(up, "owner", "cluster-admin")).status == 303
    assert reader.sign_in(token_of(up, "reader", "cluster-admin", "team")).status == 303

    assert names(owner) == {"mine", "theirs"} and names(reader) == {"mine"}
    assert owner.json("/api/v1/nodes")["total"] == 3 and reader.json("/api/v1/nodes")["total"] == 0
    assert reader.get("/jobs/default/theirs").status == 403
    refused = reader.write("/jobs/default/theirs/do/delete")
    assert refused.status == 403 and b"cannot delete" in refused.raw
    assert owner.write("/jobs/default/theirs/do/suspend").status == 303
    wait_until(lambda: up.phase("theirs") == "Aborted", "the job is suspended")
    wait_until(lambda: "Aborted" in owner.text("/jobs/default/theirs"), "the page shows it")
    assert owner.json("/api/v1/usage")["header"] is not None  # of the history of `volcano up`


def test_wrong_settings_of_a_provider_are_refused_at_the_start(up: Up, tmp_path: Path):
    words = ["dashboard", "--kubeconfig", str(up.data / "kubeconfig"), "--listen-address", "127.0.0.1:0"]
    done = subprocess.run(
        [*VOLCANO, *words, "--oidc-issuer-url", "http://accounts.example.com", "--oidc-client-id", "x"],
        capture_output=True, text=True, env=environment(tmp_path), timeout=60,
    )  # fmt: skip
    alone = subprocess.run(
        [*VOLCANO, *words, "--oidc-client-id", "x"],
        capture_output=True,
        text=True,
        env=environment(tmp_path),
        timeout=60,
    )

    assert done.returncode == 2 and "is not an https address" in done.stderr
    assert alone.returncode == 2 and "belong together" in alone.stderr
