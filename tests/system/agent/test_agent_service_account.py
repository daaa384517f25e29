"""Programs in pods find the API server as they would in any cluster: by the official client, with the pod's account."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests import needs
from tests.system.agent.kit import Machine, a_pod, terminated
from volcano.embedded.agent.containers.container_attempt import ContainerAttempt

FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount"
LOOK = f"ls {FOLDER} 2>/dev/null | tr '\\n' ' '"
INSIDE = (
    "import kubernetes, os\n"
    "kubernetes.config.load_incluster_config()\n"
    "user = kubernetes.client.AuthenticationV1Api().create_self_subject_review({}).status.user_info\n"
    "print(user.username, user.extra['authentication.kubernetes.io/pod-name'])\n"
    "try:\n"
    "    kubernetes.client.CoreV1Api().list_namespaced_secret('default')\n"
    "except kubernetes.client.ApiException as error:\n"
    "    print(error.status)\n"
    "print(os.environ['KUBERNETES_SERVICE_HOST'])\n"
    f"print(open('{FOLDER}/namespace').read())\n"
)


@pytest.fixture
async def machine(served_machine: Machine, tmp_path: Path) -> Machine:
    """With what controllers make in every namespace."""
    certificate = (tmp_path / "pki" / "ca.crt").read_text()
    root = {"kind": "ConfigMap", "metadata": {"name": "kube-root-ca.crt", "namespace": "default"}}
    await served_machine.create(
        {"kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "default"}},
        {
            "kind": "ServiceAccount",
            "metadata": {"name": "shy", "namespace": "default"},
            "automountServiceAccountToken": False,
        },
        {**root, "data": {"ca.crt": certificate}},
    )
    return served_machine


@needs.NAMESPACES
async def test_the_tokens_place_lies_in_the_containers_own_run_and_needs_no_layer(machine):
    await machine.create(a_pod("plain", "sh", "-c", f"ls {FOLDER}; sleep 1000"))
    await machine.until_phase("plain", "Running")
    await machine.until_output("plain", "token")

    known = machine.agent.find("default", "plain")
    folder = machine.runtime.container_folder(ContainerAttempt(known.pod, "main", 0))
    assert [each.name for each in folder.iterdir() if each.name.startswith("layer")] == []


async def test_the_official_client_works_in_a_pod_with_no_more_rights_than_the_pods(machine):
    pytest.importorskip("kubernetes")
    await machine.create(a_pod("client", sys.executable, "-c", INSIDE))

    pod = await machine.finished("client")

    assert terminated(pod)["exitCode"] == 0, await machine.output("client")
    assert (await machine.output("client")).splitlines() == [
        "system:serviceaccount:default:default ['client']", "403", "kubernetes.default.svc", "default"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "spec", "expected"),
    [
        ("silent", {}, ["ca.crt", "namespace", "token"]),
        ("refusing", {"automountServiceAccountToken": False}, []),
        ("shy", {"serviceAccountName": "shy"}, []),
        ("bold", {"serviceAccountName": "shy", "automountServiceAccountToken": True}, ["ca.crt", "namespace", "token"]),
    ],
)
async def test_a_pod_and_its_account_say_whether_it_has_a_token(machine, name, spec, expected):
    await machine.create(a_pod(name, "sh", "-c", LOOK, **spec))

    await machine.finished(name)

    assert (await machine.output(name)).split() == expected


async def test_what_a_pod_mounts_there_itself_is_left_alone(machine):
    mounted = {"volumeMounts": [{"name": "own", "mountPath": FOLDER}]}
    pod = a_pod("own", "sh", "-c", LOOK, container=mounted, volumes=[{"name": "own", "emptyDir": {}}])
    await machine.create(pod)

    await machine.finished("own")

    assert (await machine.output("own")).split() == []


async def test_a_token_is_made_anew_before_it_ends_and_the_pod_sees_it(machine):
    script = f'cd {FOLDER}; before=$(cat token); echo ready; while [ "$(cat token)" = "$before" ]; do sleep 0.05; done'
    await machine.create(a_pod("long", "sh", "-c", script))
    pod = await machine.until_phase("long", "Running")
    await machine.until_output("long", "ready")
    sandbox = machine.runtime.sandboxes.pods[pod["metadata"]["uid"]]
    assert sandbox.renew_tokens_at > machine.clock.now()

    sandbox.renew_tokens_at = machine.clock.now()
    await machine.runtime.files.refresh(sandbox)

    assert terminated(await machine.finished("long"))["exitCode"] == 0
    assert sandbox.renew_tokens_at > machine.clock.now()
