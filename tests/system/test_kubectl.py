"""The real kubectl, unchanged, against the embedded API server."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import needs
from tests.running_server import Client, Running, running_server

KUBECTL = shutil.which("kubectl")
pytestmark = [
    pytest.mark.kubectl,
    needs.KUBECTL,
    pytest.mark.timeout(180),
]

Run = Callable[..., str]


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with running_server() as running:
        yield running


@pytest.fixture(scope="module")
def run(running: Running, tmp_path_factory: pytest.TempPathFactory) -> Run:
    home = tmp_path_factory.mktemp("home")

    def run(*arguments: str, stdin: str = "", fails: bool = False, kubeconfig: Path | None = None) -> str:
        environment = {**os.environ, "HOME": str(home), "KUBECONFIG": str(kubeconfig or running.kubeconfig)}
        done = subprocess.run(
            [str(KUBECTL), *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            env=environment,
            timeout=60,
            check=False,
        )
        assert (done.returncode != 0) is fails, f"{arguments}: {done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    return run


@pytest.fixture
def namespace(run: Run, request: pytest.FixtureRequest) -> str:
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.removeprefix("test_"))[:50].strip("-")
    run("create", "namespace", name)
    return name


JOB = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: mpi}
spec:
  minAvailable: 2
  queue: default
  tasks:
  - name: worker
    replicas: 2
    template:
      spec:
        containers: [{name: main, image: busybox, command: [sleep, "60"]}]
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: one, labels: {app: one}}
spec: {containers: [{name: main, image: busybox}]}
"""

QUEUE = """
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: fast}
spec: {weight: 2}
"""
NODE = """
apiVersion: v1
kind: Node
metadata: {name: NAME}
status: {capacity: {cpu: 4}}
"""


def test_apply_creates_then_changes_nothing_then_configures(run: Run, namespace: str):
    assert "created" in run("apply", "-n", namespace, "-f", "-", stdin=JOB)
    assert "unchanged" in run("apply", "-n", namespace, "-f", "-", stdin=JOB)
    changed = run("apply", "-n", namespace, "-f", "-", stdin=JOB.replace("minAvailable: 2", "minAvailable: 1"))

    assert "configured" in changed
    assert run("get", "vcjob", "mpi", "-n", namespace, "-o", "jsonpath={.spec.minAvailable}") == "1"


def test_apply_works_for_built_in_kinds_too(run: Run, namespace: str):
    config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: '1', b: '2'}\n"
    run("apply", "-n", namespace, "-f", "-", stdin=config)

    assert "configured" in run("apply", "-n", namespace, "-f", "-", stdin=config.replace(", b: '2'", ""))
    assert run("get", "cm", "c", "-n", namespace, "-o", "jsonpath={.data}") == '{"a":"1"}'


def test_server_side_apply_owns_fields_and_names_conflicts(run: Run, namespace: str):
    apply = ("apply", "--server-side", "-n", namespace, "-f", "-")
    run(*apply, "--field-manager=one", stdin=JOB)

    other = JOB.replace("minAvailable: 2", "minAvailable: 1")
    refused = run(*apply, "--field-manager=two", stdin=other, fails=True)

    assert 'conflict with "one": .spec.minAvailable' in refused
    assert "serverside-applied" in run(*apply, "--field-manager=two", "--force-conflicts", stdin=other)


def test_get_shows_tables_wide_and_otherwise(run: Run, namespace: str):
    run("create", "-n", namespace, "-f", "-", stdin=POD)
    run("create", "-n", namespace, "-f", "-", stdin=JOB)

    table = run("get", "pods", "-n", namespace)
    assert table.splitlines()[0].split() == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert "NODE" in run("get", "pods", "-n", namespace, "-o", "wide")
    assert run("get", "pod", "one", "-n", namespace, "-o", "yaml").startswith("apiVersion: v1")
    assert json.loads(run("get", "pod", "one", "-n", namespace, "-o", "json"))["kind"] == "Pod"
    assert run("get", "pods", "-n", namespace, "-o", "name") == "pod/one\n"
    assert run("get", "pods", "-n", namespace, "-l", "app=one", "-o", "name") == "pod/one\n"
    assert "No resources found" in run("get", "pods", "-n", namespace, "-l", "app=two")
    assert run("get", "pods", "-A", "--field-selector", f"metadata.namespace={namespace}", "-o", "name") == "pod/one\n"
    assert namespace in run("get", "pods", "-A")
    assert (
        run("get", "pod", "one", "-n", namespace, "-o", "custom-columns=N:.metadata.name", "--no-headers").strip()
        == "one"
    )


def test_volcanos_kinds_are_shown_by_their_short_names(run: Run, namespace: str):
    run("create", "-n", namespace, "-f", "-", stdin=JOB)
    run("create", "-f", "-", stdin=QUEUE)

    assert run("get", "vcjob", "-n", namespace).splitlines()[0].split() == [
        "NAME",
        "STATUS",
        "MINAVAILABLE",
        "RUNNINGS",
        "AGE",
    ]
    assert run("get", "vcjob", "-n", namespace, "-o", "wide").splitlines()[0].split()[-1] == "QUEUE"
    assert run("get", "q").splitlines()[0].split() == ["NAME", "PARENT"]
    assert "No resources found" in run("get", "pg", "-n", namespace)


def test_a_watch_prints_what_changes(run: Run, running: Running, namespace: str, tmp_path: Path):
    environment = {**os.environ, "HOME": str(tmp_path), "KUBECONFIG": str(running.kubeconfig)}
    arguments = [str(KUBECTL), "get", "cm", "-n", namespace, "-w", "-o", "name"]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, env=environment) as watching:
        run("create", "cm", "first", "-n", namespace)
        assert watching.stdout.readline().strip() == "configmap/first"
        run("create", "cm", "second", "-n", namespace)
        assert watching.stdout.readline().strip() == "configmap/second"
        watching.terminate()


def test_describe_tells_about_pods_jobs_nodes_and_queues(run: Run, namespace: str):
    run("create", "-n", namespace, "-f", "-", stdin=POD)
    run("create", "-n", namespace, "-f", "-", stdin=JOB)
    run("create", "-f", "-", stdin=NODE.replace("NAME", "node-one"))

    assert "QoS Class:" in run("describe", "pod", "one", "-n", namespace)
    assert "Min Available:  2" in run("describe", "vcjob", "mpi", "-n", namespace)
    assert "cpu:  4" in run("describe", "node", "node-one")
    assert "Status:" in run("describe", "namespace", namespace)


def test_patches_of_three_types(run: Run, namespace: str):
    run("create", "-n", namespace, "-f", "-", stdin=POD)
    patch = ("patch", "pod", "one", "-n", namespace)

    run(*patch, "-p", '{"spec":{"containers":[{"name":"main","image":"strategic"}]}}')
    assert "strategic" in run("get", "pod", "one", "-n", namespace, "-o", "jsonpath={.spec.containers[0].image}")
    run(*patch, "--type=merge", "-p", '{"metadata":{"labels":{"by":"merge"}}}')
    run(*patch, "--type=json", "-p", '[{"op":"replace","path":"/metadata/labels/app","value":"json"}]')

    assert json.loads(run("get", "pod", "one", "-n", namespace, "-o", "jsonpath={.metadata.labels}")) == {
        "app": "json",
        "by": "merge",
    }


def test_label_annotate_and_edit(run: Run, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    run("create", "-n", namespace, "-f", "-", stdin=JOB)
    run("label", "vcjob", "mpi", "-n", namespace, "team=a")
    run("annotate", "vcjob", "mpi", "-n", namespace, "note=b")
    monkeypatch.setenv("KUBE_EDITOR", "sed -i s/minAvailable:.2/minAvailable:\\ 1/")

    assert "edited" in run("edit", "vcjob", "mpi", "-n", namespace)
    job = json.loads(run("get", "vcjob", "mpi", "-n", namespace, "-o", "json"))
    assert (job["metadata"]["labels"], job["metadata"]["annotations"]["note"], job["spec"]["minAvailable"]) == (
        {"team": "a"},
        "b",
        1,
    )


def test_scale_and_rollout_objects(run: Run, namespace: str):
    run("create", "deployment", "web", "--image=nginx", "-n", namespace)

    assert "scaled" in run("scale", "deployment", "web", "--replicas=3", "-n", namespace)
    assert run("get", "deployment", "web", "-n", namespace, "-o", "jsonpath={.spec.replicas}") == "3"
    assert "exposed" in run("expose", "deployment", "web", "--port=80", "-n", namespace)
    assert "ClusterIP" in run("get", "service", "web", "-n", namespace)


def test_delete_with_cascades_and_grace(run: Run, namespace: str):
    for name, cascade in (("a", "background"), ("b", "orphan"), ("c", "foreground")):
        run("create", "cm", name, "-n", namespace)
        run("delete", "cm", name, "-n", namespace, f"--cascade={cascade}", "--wait=false")
    held = run("get", "cm", "-n", namespace, "-o", "jsonpath={.items[*].metadata.finalizers}")
    assert "orphan" in held
    assert "foregroundDeletion" in held

    run("create", "-n", namespace, "-f", "-", stdin=POD.replace("spec: {", "spec: {nodeName: n1, "))
    run("delete", "pod", "one", "-n", namespace, "--grace-period=0", "--force")
    assert "NotFound" in run("get", "pod", "one", "-n", namespace, fails=True)


def test_wait_for_a_condition_a_jsonpath_and_a_deletion(run: Run, namespace: str):
    run("create", "-n", namespace, "-f", "-", stdin=POD)

    assert "condition met" in run("wait", "--for=condition=Established", "crd/jobs.batch.volcano.sh", "--timeout=10s")
    assert "condition met" in run(
        "wait", "--for=jsonpath={.status.phase}=Pending", "pod/one", "-n", namespace, "--timeout=10s"
    )
    run("delete", "pod", "one", "-n", namespace)
    run("wait", "--for=delete", "pod/one", "-n", namespace, "--timeout=10s")


def test_explain_and_api_resources(run: Run):
    assert "tasks" in run("explain", "vcjob.spec")
    assert "containers" in run("explain", "pod.spec")
    listed = run("api-resources", "--no-headers")
    assert re.search(r"^jobs\s+vcjob,vj\s+batch\.volcano\.sh/v1alpha1\s+true\s+Job", listed, re.M)
    assert "batch.volcano.sh/v1alpha1" in run("api-versions")


def test_strict_validation_happens_on_the_server(run: Run, namespace: str):
    refused = run("create", "-n", namespace, "-f", "-", stdin=JOB.replace("minAvailable", "minAvailabel"), fails=True)

    assert 'strict decoding error: unknown field "spec.minAvailabel"' in refused


def test_a_bad_object_is_refused_with_its_path(run: Run, namespace: str):
    refused = run("create", "-n", namespace, "-f", "-", stdin=JOB.replace("replicas: 2", "replicas: -1"), fails=True)

    assert (
        "spec.tasks[0].replicas: Invalid value: -1: spec.tasks[0].replicas in body should be greater than or equal to 0"
        in refused
    )


def test_auth_answers_for_the_admin_and_for_others(run: Run, running: Running, namespace: str):
    assert "yes" in run("auth", "can-i", "create", "pods", "-n", namespace)
    assert "system:admin" in run("auth", "whoami")
    run("create", "role", "reader", "--verb=get,list", "--resource=pods", "-n", namespace)
    run("create", "rolebinding", "bob", "--role=reader", "--user=bob", "-n", namespace)
    bob = running.kubeconfig_for("bob")

    assert "No resources found" in run("get", "pods", "-n", namespace, kubeconfig=bob)
    secret = run("get", "secrets", "-n", namespace, kubeconfig=bob, fails=True)
    assert f'User "bob" cannot list resource "secrets" in API group "" in the namespace "{namespace}"' in secret
    assert "no" in run("auth", "can-i", "get", "secrets", "-n", namespace, "--as=bob", fails=True)


def test_raw_requests_reach_health_and_metrics(run: Run):
    assert run("get", "--raw", "/readyz") == "ok"
    assert "apiserver_request_total" in run("get", "--raw", "/metrics")
    assert "Server Version" in run("version")


def test_create_makes_the_usual_things(run: Run, namespace: str):
    for arguments in (
        ("configmap", "c", "--from-literal=a=b"),
        ("secret", "generic", "s", "--from-literal=a=b"),
        ("serviceaccount", "sa"),
        ("quota", "q", "--hard=pods=10"),
        ("job", "j", "--image=busybox"),
        ("cronjob", "cj", "--image=busybox", "--schedule=* * * * *"),
        ("poddisruptionbudget", "pdb", "--selector=a=b", "--min-available=1"),
        ("service", "clusterip", "svc", "--tcp=80:80"),
        ("ingress", "ing", "--rule=example.com/=svc:80"),
    ):
        assert "created" in run("create", *arguments, "-n", namespace)
    assert "created" in run("create", "priorityclass", f"pc-{namespace}"[:60].strip("-"), "--value=10")
    assert len(run("create", "token", "sa", "-n", namespace).strip().split(".")) == 3


def test_a_service_account_token_opens_what_its_roles_allow(run: Run, running: Running, namespace: str):
    run("create", "serviceaccount", "robot", "-n", namespace)
    token = run("create", "token", "robot", "-n", namespace).strip()
    robot = Client(running.kubeconfig, token=token)
    path = f"/api/v1/namespaces/{namespace}/pods"

    assert robot.get(path).status == 403
    run("create", "rolebinding", "robot", "--clusterrole=view", f"--serviceaccount={namespace}:robot", "-n", namespace)
    assert robot.get(path).status == 200
    assert robot.create(path, {}).status == 403


def test_replace_diff_and_kustomize_free_verbs(run: Run, namespace: str):
    run("create", "-n", namespace, "-f", "-", stdin=JOB)

    assert "minAvailable: 1" in run(
        "diff", "-n", namespace, "-f", "-", stdin=JOB.replace("minAvailable: 2", "minAvailable: 1"), fails=True
    )
    assert "replaced" in run(
        "replace", "-n", namespace, "-f", "-", stdin=JOB.replace("minAvailable: 2", "minAvailable: 1")
    )


def test_cordon_taint_and_drain(run: Run, namespace: str):
    run("create", "-f", "-", stdin=NODE.replace("NAME", "node-two"))
    run("create", "-n", namespace, "-f", "-", stdin=POD.replace("spec: {", "spec: {nodeName: node-two, "))

    run("cordon", "node-two")
    run("taint", "nodes", "node-two", "a=b:NoSchedule")
    assert run("get", "nodes", "--field-selector", "spec.unschedulable=true", "-o", "name") == "node/node-two\n"
    evicted = run("drain", "node-two", "--force", "--timeout=2s", "--disable-eviction=false", fails=True)
    run("uncordon", "node-two")

    assert "evicting pod" in evicted
    assert json.loads(run("get", "pod", "one", "-n", namespace, "-o", "json"))["metadata"]["deletionTimestamp"]
