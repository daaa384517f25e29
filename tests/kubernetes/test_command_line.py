"""vcctl against a real API server: a person with the chart's editor role, a viewer, and an administrator of queues."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.running_server import Client
from tests.stories.builders import a_job, a_task

from .commands import kubectl
from .components import Components, wait_for
from .control_plane import ControlPlane
from .real_system import RealSystem

VCCTL = Path(sys.executable).with_name("vcctl")


def vcctl(kubeconfig: Path, *words: str) -> tuple[int, str]:
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
    done = subprocess.run([str(VCCTL), *words], env=environment, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout + done.stderr


def person(running: Components, api: Client, namespace: str, role: str) -> Path:
    """Somebody whom one of the chart's roles is bound to, in one namespace."""
    group = "rbac.authorization.k8s.io"
    assert api.create(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": role}}).status == 201
    binding = {
        "metadata": {"name": role},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": role, "namespace": namespace}],
    }
    assert api.create(f"/apis/{group}/v1/namespaces/{namespace}/rolebindings", binding).status == 201
    return running.account(role, namespace)


def may_name_owners(api: Client, namespace: str, role: str) -> None:
    """A Command belongs to its job: where the API server enforces rights on owners, as this one does, that is one more."""
    group, name = "rbac.authorization.k8s.io", f"{role}-owners"
    rules = [{"apiGroups": ["batch.volcano.sh"], "resources": ["jobs/finalizers"], "verbs": ["update"]}]
    reference = {"apiGroup": group, "kind": "Role", "name": name}
    subjects = [{"kind": "ServiceAccount", "name": role, "namespace": namespace}]
    root = f"/apis/{group}/v1/namespaces/{namespace}"
    assert api.create(f"{root}/roles", {"metadata": {"name": name}, "rules": rules}).status == 201
    assert (
        api.create(
            f"{root}/rolebindings", {"metadata": {"name": name}, "roleRef": reference, "subjects": subjects}
        ).status
        == 201
    )


async def test_an_editor_runs_suspends_resumes_and_deletes_jobs(system: RealSystem, running: Components, api: Client):
    editor = person(running, api, system.namespace, "vcjob-editor-role")
    where = ("-n", system.namespace)

    code, said = vcctl(editor, "job", "run", "-N", "mine", "-r", "2", "-m", "2", *where)
    assert (code, "run job mine successfully" in said) == (0, True), said
    await system.until(lambda: system.phase("mine") == "Running")
    code, said = vcctl(editor, "job", "list", *where)
    assert code == 0 and "mine" in said and "Running" in said
    may_name_owners(api, system.namespace, "vcjob-editor-role")
    wait_for(lambda: vcctl(editor, "job", "suspend", "-N", "mine", *where)[0] == 0, why="the right is known")
    await system.until(lambda: system.phase("mine") == "Aborted")
    assert vcctl(editor, "job", "resume", "-N", "mine", *where)[0] == 0
    await system.until(lambda: system.phase("mine") == "Running")
    assert vcctl(editor, "job", "delete", "-N", "mine", *where)[0] == 0
    await system.until(lambda: not system.phase("mine"))

    code, said = vcctl(editor, "queue", "list")
    assert code != 0 and "forbidden" in said


async def test_a_viewer_looks_and_does_not_touch(system: RealSystem, running: Components, api: Client):
    viewer = person(running, api, system.namespace, "vcjob-viewer-role")
    await system.apply(a_job("seen", a_task()))
    await system.until(lambda: system.phase("seen") == "Running")

    code, said = vcctl(viewer, "job", "list", "-n", system.namespace)
    assert code == 0 and "seen" in said
    code, said = vcctl(viewer, "job", "delete", "-N", "seen", "-n", system.namespace)
    assert code != 0 and "forbidden" in said


async def test_a_job_that_waits_is_explained(system: RealSystem, plane: ControlPlane):
    await system.apply(a_job("large", a_task(replicas=2, cpu="1000")))
    await system.until(lambda: system.job("large").status.state.reason)

    code, said = vcctl(plane.kubeconfig, "job", "explain", "large", "-n", system.namespace)

    assert code == 0, said
    assert "cpu" in said


@pytest.mark.parametrize(
    "words",
    [
        ("queue", "list"),
        ("queue", "get", "-n", "default"),
        ("queue", "tree"),
        ("jobflow", "list"),
        ("jobtemplate", "list"),
        ("pod", "list"),
    ],
)
def test_everything_can_be_listed(running: Components, plane: ControlPlane, words: tuple[str, ...]):
    code, said = vcctl(plane.kubeconfig, *words)

    assert code == 0, said


async def test_queues_are_made_closed_opened_and_deleted(system: RealSystem, plane: ControlPlane):
    name = f"q-{system.namespace}"

    def state() -> str:
        return kubectl(plane, "get", "queue", name, "-o", "jsonpath={.status.state}")

    assert vcctl(plane.kubeconfig, "queue", "create", "-n", name, "-w", "3")[0] == 0
    await system.until(lambda: state() == "Open")
    for action, wanted in (("close", "Closed"), ("open", "Open")):
        code, said = vcctl(plane.kubeconfig, "queue", "operate", "-n", name, "-a", action)
        assert code == 0, said
        await system.until(lambda wanted=wanted: state() == wanted)
    assert vcctl(plane.kubeconfig, "queue", "delete", "-n", name)[0] == 0


@pytest.fixture
def printed_job(running: Components, api: Client):
    """A job in the namespace default, where introductions have theirs."""
    path, name = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs", "my-printed-job"
    body = a_job(name, a_task(lasts="3600s"))
    assert api.create(path, body).status == 201
    wait_for(lambda: phase_of(api, name) == "Running", why="the job runs")
    yield name
    if api.get(f"{path}/{name}").status == 200:
        api.delete(f"{path}/{name}")
    wait_for(lambda: api.get(f"{path}/{name}").status == 404, why="the job is gone")


def phase_of(api: Client, name: str) -> str:
    answer = api.get(f"/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs/{name}")
    status = answer.body.get("status") or {} if answer.status == 200 else {}
    return (status.get("state") or {}).get("phase", "")


def test_n_names_the_job_as_older_texts_write_it(printed_job: str, plane: ControlPlane, api: Client):
    for verb, wanted in (("view", "Running"), ("suspend", "Aborted"), ("resume", "Running"), ("delete", "")):
        code, said = vcctl(plane.kubeconfig, "job", verb, "-n", printed_job)

        assert code == 0, said
        assert f"-n is the namespace; the job {printed_job} in default is taken" in said
        wait_for(lambda wanted=wanted: phase_of(api, printed_job) == wanted, why=f"after {verb} it is {wanted!r}")


def test_a_guarantee_without_deserved_is_shown_as_deserved(running: Components, plane: ControlPlane, api: Client):
    path = "/apis/scheduling.volcano.sh/v1beta1/queues"
    name = "printed-guarantee"
    assert vcctl(plane.kubeconfig, "queue", "create", "-n", name, "-w", "2", "--guarantee", "cpu=4")[0] == 0
    made = api.get(f"{path}/{name}").body["spec"]

    code, said = vcctl(plane.kubeconfig, "queue", "tree")

    assert (code, made["weight"], "deserved" in made) == (0, 2, False)
    shown = said[said.index(f"{name}  ") :]
    assert "deserved 4, guaranteed 4" in shown
    assert api.delete(f"{path}/{name}").status == 200
