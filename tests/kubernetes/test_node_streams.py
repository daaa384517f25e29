"""A node of ours behind a real kube-apiserver, which speaks to kubelets in its own way: exec, attach, port-forward, tokens."""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import needs
from tests.running_server import Client

from .components import Process, wait_for
from .control_plane import ControlPlane

pytestmark = needs.KUBECTL
LABEL = "test/streams=here"
PODS = "/api/v1/namespaces/default/pods"
PROTOCOLS = pytest.mark.parametrize("websockets", ["true", "false"], ids=["websocket", "spdy"])
SERVE = "import http.server as h; s = h.HTTPServer(('', 0), h.SimpleHTTPRequestHandler); print(s.server_port, flush=True); s.serve_forever()"
CONTAINERS = [
    {"name": "web", "image": "any", "command": [sys.executable, "-c", SERVE]},
    {
        "name": "greeter",
        "image": "any",
        "stdin": True,
        "command": ["sh", "-c", "while read name; do echo hello $name; done"],
    },
]


@pytest.fixture(scope="module")
def pod(plane: ControlPlane, api: Client, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One that runs as processes of this machine."""
    folder = tmp_path_factory.mktemp("node")
    node = ["agent", "--kubeconfig", str(plane.kubeconfig), "--data-dir", str(folder / "agent"), "--node-labels", LABEL]
    agent = Process([*node, "--pod-network", "host"], folder / "agent.log")
    try:
        agent.wait_for_word("the nodes are ready")
        name = api.get("/api/v1/nodes", labelSelector=LABEL).body["items"][0]["metadata"]["name"]
        spec = {
            "nodeName": name,
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "containers": CONTAINERS,
        }
        wait_for(lambda: api.create(PODS, {"metadata": {"name": "streams"}, "spec": spec}).status in (201, 409))
        wait_for(lambda: api.get(f"{PODS}/streams").body["status"]["phase"] == "Running")
        yield "streams"
        api.delete(f"{PODS}/streams")
        wait_for(lambda: api.get(f"{PODS}/streams").status == 404)
    finally:
        agent.stop()
        for found in api.get("/api/v1/nodes", labelSelector=LABEL).body["items"]:
            api.delete(f"/api/v1/nodes/{found['metadata']['name']}")


class Kubectl:
    def __init__(self, plane: ControlPlane, websockets: str) -> None:
        self.environment = {
            **os.environ,
            "KUBECONFIG": str(plane.kubeconfig),
            "KUBECTL_REMOTE_COMMAND_WEBSOCKETS": websockets,
            "KUBECTL_PORT_FORWARD_WEBSOCKETS": websockets,
        }

    def __call__(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["kubectl", *words],
            env=self.environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def start(self, *words: str) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        return subprocess.Popen(
            ["kubectl", *words], env=self.environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True
        )


@pytest.fixture
def kubectl(plane: ControlPlane, websockets: str) -> Kubectl:
    return Kubectl(plane, websockets)


@PROTOCOLS
def test_exec_gives_output_errors_input_and_the_exit_code(kubectl: Kubectl, pod: str):
    done = kubectl("exec", pod, "-c", "web", "--", "sh", "-c", "echo out; echo oops >&2; exit 3")
    counted = kubectl("exec", "-i", pod, "-c", "web", "--", "wc", "-c", stdin="x" * 1_000_000)

    assert (done.returncode, done.stdout) == (3, "out\n") and "oops\n" in done.stderr
    assert counted.stdout.strip() == "1000000"


@PROTOCOLS
def test_an_attached_container_hears_and_answers(kubectl: Kubectl, pod: str):
    process = kubectl.start("attach", "-i", pod, "-c", "greeter")
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("you\n")
    process.stdin.flush()

    try:
        assert process.stdout.readline() == "hello you\n"
    finally:
        process.kill()
        process.communicate()


@PROTOCOLS
def test_a_port_is_forwarded(kubectl: Kubectl, pod: str):
    port = kubectl("logs", pod, "-c", "web").stdout.split()[0]
    process = kubectl.start("port-forward", f"pod/{pod}", f":{port}")
    assert process.stdout is not None

    try:
        local = process.stdout.readline().split(" -> ")[0].rpartition(":")[2]
        with urllib.request.urlopen(f"http://127.0.0.1:{local}/", timeout=30) as answer:
            assert answer.status == 200
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("websockets", ["true"])
def test_the_token_is_the_one_that_admission_asked_for(kubectl: Kubectl, pod: str, api: Client):
    volumes = api.get(f"{PODS}/{pod}").body["spec"]["volumes"]
    folder = Path("/var/run/secrets/kubernetes.io/serviceaccount")

    listed = kubectl("exec", pod, "-c", "web", "--", "ls", str(folder))

    assert [volume["name"].startswith("kube-api-access-") for volume in volumes] == [True]
    assert listed.stdout.split() == ["ca.crt", "namespace", "token"]
