"""Volcano's components as real processes against a control plane, each with the rights of its service account."""

from __future__ import annotations

import base64
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import yaml

from tests.running_server import Client

from .control_plane import ControlPlane, free_port

NAMESPACE = "volcano-system"
VOLCANO = [sys.executable, "-m", "volcano"]
PATIENCE = 60.0


def wait_for(condition: Callable[[], Any], *, within: float = PATIENCE, why: str = "") -> Any:
    """What the condition answered when it first held."""
    end = time.monotonic() + within
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"not within {within} s: {why() if callable(why) else why or condition}")
        time.sleep(0.05)


def path_of(body: dict[str, Any], plurals: dict[tuple[str, str], tuple[str, bool]]) -> str:
    """The collection an object belongs to."""
    plural, namespaced = plurals[body["apiVersion"], body["kind"]]
    root = f"/apis/{body['apiVersion']}" if "/" in body["apiVersion"] else f"/api/{body['apiVersion']}"
    namespace = body["metadata"].get("namespace", "default")
    return f"{root}/namespaces/{namespace}/{plural}" if namespaced else f"{root}/{plural}"


def discover(api: Client) -> dict[tuple[str, str], tuple[str, bool]]:
    """Plural and scope of every kind there is."""
    groups = [group["preferredVersion"]["groupVersion"] for group in api.get("/apis").body["groups"]]
    found = {}
    for version in ("v1", *groups):
        answer = api.get(f"/api/{version}" if version == "v1" else f"/apis/{version}")
        for row in answer.body["resources"] if answer.status == 200 else ():  # a new group is named before it is served
            if "/" not in row["name"]:
                found[version, row["kind"]] = (row["name"], row["namespaced"])
    return found


def apply(api: Client, objects: list[dict[str, Any]]) -> None:
    """Server-side, each in its turn; definitions first, and then what they define."""
    plurals = discover(api)
    for body in objects:
        if (body["apiVersion"], body["kind"]) not in plurals:
            plurals = wait_for(lambda body=body: _knows(api, body), why=f"{body['kind']} is served")
        url = f"{path_of(body, plurals)}/{body['metadata']['name']}"
        answer = api(
            "PATCH", url, msgspec.json.encode(body), query={"fieldManager": "tests", "force": "true"},
            content_type="application/apply-patch+yaml",
        )  # fmt: skip
        assert answer.status in (200, 201), (body["kind"], body["metadata"]["name"], answer)


def _knows(api: Client, body: dict[str, Any]) -> Any:
    plurals = discover(api)
    return plurals if (body["apiVersion"], body["kind"]) in plurals else None


class Process:
    """One component. `log` is what it said; one that is kept is started again when it ends, as a kubelet does."""

    def __init__(self, words: list[str], log: Path, *, kept: bool = False) -> None:
        self.words, self.path = words, log
        self._file = log.open("ab")
        self._wanted = True
        self.process = self._spawn()
        if kept:
            self._keeper = threading.Thread(target=self._keep, daemon=True)
            self._keeper.start()

    def _spawn(self) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        return subprocess.Popen(
            [*VOLCANO, *self.words], stdout=self._file, stderr=self._file, stdin=subprocess.DEVNULL, env=environment,
            start_new_session=True,
        )  # fmt: skip

    def _keep(self) -> None:
        while self._wanted:
            self.process.wait()
            time.sleep(1)
            if self._wanted:
                self.process = self._spawn()

    @property
    def log(self) -> str:
        return self.path.read_text(errors="replace")

    def kill(self) -> None:
        """As a crash ends it."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        self._wanted = False
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.kill()
        self._file.close()

    def wait_for_word(self, text: str, *, within: float = PATIENCE) -> None:
        def said() -> bool:
            assert self.process.poll() is None, f"{self.words[0]} ended with {self.process.returncode}:\n{self.log}"
            return text in self.log

        wait_for(said, within=within, why=lambda: f"{self.words[0]} says {text!r}:\n{self.log[-3000:]}")


class Components:
    """Starts components with a log each in a folder, and ends them all."""

    def __init__(self, plane: ControlPlane, api: Client, folder: Path) -> None:
        self.plane, self.api, self.folder = plane, api, folder
        self.running: list[Process] = []
        folder.mkdir(parents=True, exist_ok=True)

    def start(self, *words: str, name: str = "", kept: bool = False) -> Process:
        process = Process(list(words), self.folder / f"{name or words[0]}-{len(self.running)}.log", kept=kept)
        self.running.append(process)
        return process

    def stop(self) -> None:
        for process in reversed(self.running):
            process.stop()

    def account(self, name: str, namespace: str = NAMESPACE, server: str = "") -> Path:
        """A kubeconfig with a token of a service account, and nothing else."""
        body = {"spec": {"expirationSeconds": 7200}}
        token = self.api.create(f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token", body).body
        path = self.folder / f"kubeconfig-{name}{'-other' if server else ''}"
        authority = base64.b64encode(self.plane.authority.certificate_path.read_bytes()).decode()
        config = {
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": server or self.plane.url, "certificate-authority-data": authority}}],
            "users": [{"name": "u", "user": {"token": token["status"]["token"]}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        }  # fmt: skip
        path.write_text(yaml.safe_dump(config))
        path.chmod(0o600)
        return path

    def administrator(self, server: str) -> Path:
        """A token that may do anything: client certificates do not pass a proxy."""
        name, group = "tests-administrator", "rbac.authorization.k8s.io"
        self.api.create(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", {"metadata": {"name": name}})
        binding = {
            "metadata": {"name": name},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}],
        }
        self.api.create(f"/apis/{group}/v1/clusterrolebindings", binding)
        return self.account(name, server=server)

    # -- the components of an installation ------------------------------------------------------------------------
    def scheduler(
        self, *more: str, account: str = "volcano-scheduler", elects: bool = False, server: str = ""
    ) -> Process:
        kubeconfig = self.account(account, server=server)
        lease = f"--leader-elect={'true' if elects else 'false'}"
        return self.start("scheduler", "--kubeconfig", str(kubeconfig), lease, *more, kept=elects)

    def controllers(self, *more: str, elects: bool = False, server: str = "") -> Process:
        kubeconfig = self.account("volcano-controllers", server=server)
        lease = f"--leader-elect={'true' if elects else 'false'}"
        return self.start("controller-manager", "--kubeconfig", str(kubeconfig), lease, *more, kept=elects)

    def nodes(
        self, prefix: str, count: int, *, cpu: str = "32", labels: dict[str, str] | None = None, server: str = ""
    ) -> Process:
        """Simulated nodes; the agent is a node's own, so it is not bound by the chart's roles."""
        file = self.folder / f"nodes-{prefix}.yaml"
        shapes = [
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": f"{prefix}-{n}", "labels": {"pool": prefix, **(labels or {})}},
                "status": {"capacity": {"cpu": cpu, "memory": "256Gi", "pods": "110", "nvidia.com/gpu": "8"}},
            }
            for n in range(count)
        ]
        file.write_text(yaml.safe_dump_all(shapes))
        kubeconfig = self.administrator(server) if server else self.plane.kubeconfig
        words = [
            "--kubeconfig",
            str(kubeconfig),
            "--data-dir",
            str(self.folder / f"agent-{prefix}"),
            "--nodes-file",
            str(file),
        ]
        process = self.start("agent", *words, name=f"agent-{prefix}")
        process.wait_for_word("the nodes are ready")
        return process

    def webhook(self, *more: str) -> Process:
        from volcano.install.rbac import SERVED

        port = free_port()
        words = [
            "--kubeconfig", str(self.account("volcano-admission")), "--listen-address", "127.0.0.1", "--port", str(port),
            "--enabled-admission", ",".join(webhook.path for webhook in SERVED), "--register-webhooks=false",
            "--webhook-namespace", NAMESPACE, "--webhook-service-name", "volcano-admission-service",
        ]  # fmt: skip
        process = self.start("webhook-manager", *words, *more)
        process.wait_for_word("serving ")
        return process


@contextlib.contextmanager
def components(plane: ControlPlane, api: Client, folder: Path) -> Iterator[Components]:
    found = Components(plane, api, folder)
    try:
        yield found
    finally:
        found.stop()
