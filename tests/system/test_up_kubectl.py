"""`volcano up` and stock kubectl, nothing else: pods that are run, spoken to, forwarded to, and that use the API themselves."""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator

import pytest

from tests import needs
from tests.system.real_system import DEADLINE, Up, environment, running_up, wait_until

pytestmark = [
    pytest.mark.kubectl,
    needs.KUBECTL,
    pytest.mark.timeout(300),
]
INSIDE = (
    "import kubernetes; kubernetes.config.load_incluster_config(); "
    "print(kubernetes.client.AuthenticationV1Api().create_self_subject_review({}).status.user_info.username)"
)
RUN = ("run", "-i", "--rm", "--quiet", "--restart=Never", "--image=busybox")


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    with running_up(tmp_path_factory.mktemp("up")) as up:
        yield up


def started(up: Up, *words: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    settings = {**environment(up.folder), "KUBECONFIG": str(up.data / "kubeconfig"), "PATH": os.environ["PATH"]}
    return subprocess.Popen(["kubectl", *words], env=settings, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def kubectl(up: Up, *words: str, stdin: str = "") -> tuple[int, str, str]:
    process = started(up, *words)
    out, err = process.communicate(stdin, timeout=DEADLINE)
    return process.returncode, out, err


def test_a_command_is_run_with_its_input_and_its_exit_code(up: Up):
    script = "read name; echo hello $name; exit 5"

    code, out, err = kubectl(up, *RUN, "asker", "--", "sh", "-c", script, stdin="you\n")

    assert (code, "hello you\n" in out) == (5, True), err


def test_a_port_of_a_pod_is_forwarded(up: Up):
    serve = ("python3", "-u", "-m", "http.server", "8765")
    code, _, err = kubectl(up, "run", "web", "--restart=Never", "--image=python", "--", *serve)
    assert code == 0, err
    wait_until(lambda: "Serving" in up.logs("web"), "the pod listens")

    process = started(up, "port-forward", "pod/web", ":8765")
    assert process.stdout is not None
    local = process.stdout.readline().split(" -> ")[0].rpartition(":")[2]

    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{local}/etc/hostname", timeout=DEADLINE) as answer:
            assert answer.read() == b"web\n"
    finally:
        process.kill()
        process.communicate()
        kubectl(up, "delete", "pod", "web", "--now")


def test_a_pod_uses_the_api_as_its_service_account(up: Up):
    pytest.importorskip("kubernetes")

    code, out, err = kubectl(up, *RUN, "client", "--", sys.executable, "-c", INSIDE)

    assert (code, "system:serviceaccount:default:default" in out) == (0, True), err
    service = up.api.get("/api/v1/namespaces/default/services/kubernetes").body
    assert service["spec"]["ports"][0]["port"] == 443
