"""Volcano's admission as kubectl's users meet it: inside the server, and by `volcano webhook-manager` as a program.

The same refusals, defaults and warnings, in the same words, whichever of the two serves them.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import needs
from tests.running_server import Running, running_server
from tests.system.real_system import VOLCANO, environment, wait_until
from volcano.admission.chain import ALL_PATHS
from volcano.app.admission_plug import VolcanoAdmission
from volcano.embedded.apiserver.store.memory_store import MemoryStore

KUBECTL = shutil.which("kubectl")
pytestmark = [
    pytest.mark.kubectl,
    needs.KUBECTL,
    pytest.mark.timeout(180),
]
Run = Callable[..., str]


@contextmanager
def inside(folder: Path) -> Iterator[Running]:
    store = MemoryStore()
    with running_server(store, admission=VolcanoAdmission(store)) as running:
        yield running


@contextmanager
def beside(folder: Path) -> Iterator[Running]:
    """A server without Volcano's admission, and the webhook manager next to it, as a program of its own."""
    with running_server() as running, socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        program = subprocess.Popen(
            [*VOLCANO, "webhook-manager", "--kubeconfig", str(running.kubeconfig), "--listen-address", "127.0.0.1",
             "--port", str(port), "--webhook-url", f"https://127.0.0.1:{port}", "--enabled-admission", ",".join(ALL_PATHS)],
            env=environment(folder), cwd=folder, stdout=subprocess.DEVNULL, stderr=(folder / "log").open("w"),
        )  # fmt: skip
        try:
            yield running
            assert program.poll() is None, (folder / "log").read_text()
        finally:
            program.terminate()
            program.wait(30)


@pytest.fixture(scope="module", params=[inside, beside], ids=["inside the server", "as a webhook"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    folder = tmp_path_factory.mktemp("admission")
    with request.param(folder) as running:

        def run(*arguments: str, stdin: object = "", fails: bool = False) -> str:
            variables = {**os.environ, "HOME": str(folder), "KUBECONFIG": str(running.kubeconfig)}
            text = stdin if isinstance(stdin, str) else json.dumps(stdin)
            done = subprocess.run(
                [str(KUBECTL), *arguments],
                input=text,
                capture_output=True,
                text=True,
                env=variables,
                timeout=60,
                check=False,
            )
            assert (done.returncode != 0) is fails, f"{arguments}: {done.stdout}{done.stderr}"
            return done.stdout + done.stderr

        if request.param is beside:
            wait_until(lambda: run("get", "validatingwebhookconfigurations", "-o", "name").count("\n") >= 3, "webhooks")
        if "queue" not in run("get", "queues", "-o", "name"):
            queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "default"}}
            run("create", "-f", "-", stdin={**queue, "spec": {"weight": 1}})
        run("patch", "queue", "default", "--subresource=status", "--type=merge", "-p", '{"status": {"state": "Open"}}')
        yield run


def a_job(name: str, **spec: object) -> dict[str, object]:
    template = {"spec": {"containers": [{"name": "main", "image": "busybox"}]}}
    tasks = [{"replicas": 3, "template": template}]
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"tasks": tasks, **spec},
    }


def test_an_unknown_argument_of_a_plugin_is_accepted_with_a_warning(run: Run):
    plugins = {"svc": ["--publish-not-ready-addresses=true", "--no-such-flag=1"], "env": []}

    said = run("apply", "-f", "-", stdin=a_job("warned", plugins=plugins))

    assert "Warning: " in said
    assert "spec.plugins[svc]" in said and "no-such-flag" in said
    assert "job.batch.volcano.sh/warned created" in said


def test_a_job_without_doubts_is_created_without_a_warning(run: Run):
    said = run("apply", "-f", "-", stdin=a_job("plain", plugins={"svc": ["--disable-network-policy=true"], "env": []}))

    assert "Warning" not in said


def test_an_unknown_plugin_is_refused_and_nothing_is_stored(run: Run):
    said = run("apply", "-f", "-", stdin=a_job("refused", plugins={"no-such-plugin": []}), fails=True)

    assert "denied the request: " in said and "unable to find job plugin: no-such-plugin" in said
    assert "NotFound" in run("get", "vcjob", "refused", fails=True)


def test_what_was_left_out_is_filled_in(run: Run):
    run("apply", "-f", "-", stdin=a_job("filled"))

    found = json.loads(run("get", "vcjob", "filled", "-o", "json"))["spec"]
    assert (found["queue"], found["schedulerName"], found["minAvailable"], found["maxRetry"]) == (
        "default",
        "volcano",
        3,
        3,
    )
    assert found["tasks"][0]["name"] == "default0"


def test_a_change_that_is_not_allowed_is_refused(run: Run):
    run("apply", "-f", "-", stdin=a_job("fixed"))

    said = run("patch", "vcjob", "fixed", "--type=merge", "-p", '{"spec": {"queue": "elsewhere"}}', fails=True)

    assert "job updates may not change fields other than" in said


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"kind": "Queue", "metadata": {"name": "heavy"}, "spec": {"weight": 0, "parent": "nobody"}}, "nobody"),
        (
            {
                "kind": "Queue",
                "metadata": {"name": "over"},
                "spec": {"weight": 1, "capability": {"cpu": "1"}, "deserved": {"cpu": "2"}},
            },
            "deserved",
        ),
    ],
    ids=["parent", "deserved"],
)
def test_a_queue_that_makes_no_sense_is_refused(run: Run, body: dict[str, object], words: str):
    said = run("create", "-f", "-", stdin={"apiVersion": "scheduling.volcano.sh/v1beta1", **body}, fails=True)

    assert "denied the request: " in said and words in said
