"""From Volcano to this project and back, as docs/kubernetes.md says: nothing is lost, and what runs goes on."""

from __future__ import annotations

import copy
import subprocess
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import needs
from tests.running_server import Client
from volcano.api.schemas.crds import crd_manifests
from volcano.embedded.apiserver.schemas.crd.structural import StructuralSchema, compile_schema
from volcano.install.installation import installation
from volcano.install.values import Values

from .commands import kubectl, run
from .components import NAMESPACE, VOLCANO, Components, apply, components, discover, path_of, wait_for
from .control_plane import ControlPlane
from .earlier import (
    RELEASE,
    Unavailable,
    a_command,
    definitions_in,
    open_definitions,
    released_definitions,
    whole_objects,
)
from .fixtures import CHART, WITHOUT_PODS
from .helm import find_helm

pytestmark = pytest.mark.timeout(180)
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
BATCH, FLOW, GROUPS = "batch.volcano.sh/v1alpha1", "flow.volcano.sh/v1alpha1", "scheduling.volcano.sh/v1beta1"
STOPPED = "volcano-admission-service-jobs-mutate"
JSONObject = dict[str, Any]


def jobs(name: str = "") -> str:
    return f"/apis/{BATCH}/namespaces/default/jobs/{name}".rstrip("/")


def pods(name: str = "") -> str:
    return f"/api/v1/namespaces/default/pods/{name}".rstrip("/")


# -- the story, a chapter a fixture -------------------------------------------------------------------------------
@dataclass
class Cluster:
    """A control plane that somebody installed Volcano on."""

    plane: ControlPlane
    api: Client
    definitions: list[JSONObject]
    has_status: set[str]
    kept: dict[str, JSONObject] = field(default_factory=dict)
    """Objects as they were before the exchange, by path."""

    def make(self, body: JSONObject, **metadata: Any) -> JSONObject:
        """Create an object, with its status by whichever way its kind has, and remember it."""
        path = path_of(body, discover(self.api))
        status = body.get("status")
        made = self.api.create(path, {**body, "metadata": {**body["metadata"], **metadata}})
        assert made.status == 201, made
        url = f"{path}/{body['metadata']['name']}"
        if status and body["kind"] in self.has_status:
            answer = self.api.merge(f"{url}/status", {"status": status})
            assert answer.status == 200, answer
        found: JSONObject = self.api.get(url).body
        if body["apiVersion"].partition("/")[0].endswith("volcano.sh"):
            self.kept[url] = found
        return found

    def uids(self) -> dict[str, str]:
        names = [body["metadata"]["name"] for body in self.definitions]
        return {name: self.api.get(f"{DEFINITIONS}/{name}").body["metadata"]["uid"] for name in names}

    def finish(self, pod: str) -> None:
        """As its node would say."""
        done = {"terminated": {"exitCode": 0, "reason": "Completed", "finishedAt": "2026-01-02T05:00:00Z"}}
        status = {
            "phase": "Succeeded",
            "containerStatuses": [
                {"name": "main", "image": "i", "imageID": "", "ready": False, "restartCount": 0, "state": done}
            ],
        }
        assert self.api.merge(f"{pods(pod)}/status", {"status": status}).status == 200


@pytest.fixture(scope="module", params=["open", RELEASE])
def cluster(
    request: pytest.FixtureRequest, programs: Path, audit_logs: list[Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """Volcano's definitions are installed: a release's own, or such as keep whatever is written."""
    try:
        definitions = open_definitions() if request.param == "open" else released_definitions(request.param)
    except Unavailable as error:
        pytest.skip(needs.reason(str(error), "make test-kubernetes with a network"))
    grace = {
        "kube-controller-manager": ["--node-monitor-grace-period=3000s"]
    }  # the node here has nobody to report it alive
    with ControlPlane(tmp_path_factory.mktemp("upgraded"), programs, audits=True, more=grace) as plane:
        audit_logs.append(plane.audit_log)
        api = Client(plane.kubeconfig)
        assert api.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}}).status == 201
        apply_with_kubectl(plane, yaml.safe_dump_all(definitions), "--field-manager=helm")
        kinds = {(body["spec"]["group"], body["spec"]["names"]["kind"]) for body in definitions}
        wait_for(lambda: kinds <= {(version.partition("/")[0], kind) for version, kind in discover(api)})
        wait_for(lambda: api.get("/api/v1/namespaces/default/serviceaccounts/default").status == 200)
        has_status = {
            body["spec"]["names"]["kind"] for body in definitions if body["spec"]["versions"][0].get("subresources", {}).get("status") is not None
        }  # fmt: skip
        yield Cluster(plane, api, definitions, has_status)


@pytest.fixture(scope="module")
def earlier(cluster: Cluster) -> Cluster:
    """Work of every kind is there: finished, running, waiting, half way through a flow; and Volcano itself is stopped."""
    served = {kind for _, kind in discover(cluster.api)}
    for body in whole_objects():
        if body["kind"] in served:
            cluster.make(body)
    make_node(cluster.api)
    make_running_job(cluster)
    make_waiting_job(cluster)
    make_flow(cluster)
    hook = {"name": "mutatejob.volcano.sh", "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Fail",
            "clientConfig": {"service": {"name": "volcano-admission-service", "namespace": NAMESPACE, "path": "/jobs/mutate"}},
            "rules": [{"apiGroups": ["batch.volcano.sh"], "apiVersions": ["v1alpha1"], "operations": ["CREATE"], "resources": ["jobs"]}]}  # fmt: skip
    apply(
        cluster.api,
        [
            {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": "MutatingWebhookConfiguration",
                "metadata": {"name": STOPPED},
                "webhooks": [hook],
            }
        ],
    )
    return cluster


@pytest.fixture(scope="module")
def upgraded(earlier: Cluster) -> tuple[Cluster, dict[str, str]]:
    """This project is installed over it, by the steps of the documentation; the definitions' identities before."""
    plane, before = earlier.plane, earlier.uids()
    kubectl(plane, "delete", "mutatingwebhookconfigurations", STOPPED)
    printed = subprocess.run(
        [*VOLCANO, "manifests", "crds"], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    apply_with_kubectl(plane, printed, "--force-conflicts")
    values = {**WITHOUT_PODS, "admission.mode": "policies"}
    helm = find_helm()
    if helm is None:
        apply(earlier.api, installation(Values(values)))
    else:
        words = [
            "install",
            "volcano",
            str(CHART),
            "--namespace",
            NAMESPACE,
            *(f"--set={path}={value}" for path, value in values.items()),
        ]
        run(plane, str(helm), *words)
    return earlier, before


@pytest.fixture(scope="module")
def taken_over(
    upgraded: tuple[Cluster, dict[str, str]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Cluster, Components]]:
    """Our components run with the chart's rights, and have looked at everything."""
    cluster, _ = upgraded
    with components(cluster.plane, cluster.api, tmp_path_factory.mktemp("successors")) as found:
        found.scheduler()
        found.controllers()
        yield cluster, found


def apply_with_kubectl(plane: ControlPlane, manifests: str, *words: str) -> None:
    kubectl(plane, "apply", "--server-side", *words, "-f", "-", given=manifests)


# -- what Volcano left --------------------------------------------------------------------------------------------
def make_node(api: Client) -> None:
    assert api.create("/api/v1/nodes", {"metadata": {"name": "n1"}}).status == 201
    room = {"cpu": "16", "memory": "64Gi", "pods": "110"}
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "",
        "lastHeartbeatTime": "2026-01-02T03:04:05Z",
    }
    assert (
        api.merge(
            "/api/v1/nodes/n1/status", {"status": {"capacity": room, "allocatable": room, "conditions": [ready]}}
        ).status
        == 200
    )
    wait_for(lambda: not api.get("/api/v1/nodes/n1").body["spec"].get("taints"), why="the node may be used")


def a_job(name: str, replicas: int, phase: str, **status: Any) -> JSONObject:
    container = {"name": "main", "image": "any", "resources": {"requests": {"cpu": "1"}}}
    task = {"name": "worker", "replicas": replicas, "minAvailable": replicas, "maxRetry": 3,
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}  # fmt: skip
    spec = {
        "minAvailable": replicas,
        "schedulerName": "volcano",
        "queue": "default",
        "maxRetry": 3,
        "tasks": [task],
        "plugins": {"env": [], "svc": []},
    }
    state = {"phase": phase, "lastTransitionTime": "2026-01-02T03:04:05Z"}
    conditions = [{"status": "Pending", "lastTransitionTime": "2026-01-02T03:04:00Z"}]
    told = {"state": state, "minAvailable": replicas, "version": 0, "conditions": conditions,
            "controlledResources": {"plugin-env": "env", "plugin-svc": "svc"}, **status}  # fmt: skip
    return {"apiVersion": BATCH, "kind": "Job", "metadata": {"name": name}, "spec": spec, "status": told}


def make_running_job(cluster: Cluster) -> None:
    """Two pods run on the node; beside them what the svc plugin made."""
    owner = cluster.make(
        a_job("at-work", 2, "Running", running=2, taskStatusCount={"worker": {"phase": {"Running": 2}}})
    )
    reference = owned_by(owner)
    group = f"at-work-{owner['metadata']['uid']}"
    cluster.make(a_group(group, 2, "Running", running=2), ownerReferences=reference)
    for index in range(2):
        make_pod(cluster, owner, group, index, node="n1", phase="Running")
    service = {"metadata": {"name": "at-work", "ownerReferences": reference},
               "spec": {"clusterIP": "None", "selector": {"volcano.sh/job-name": "at-work", "volcano.sh/job-namespace": "default"}}}  # fmt: skip
    hosts = {"worker.host": "at-work-worker-0.at-work\nat-work-worker-1.at-work", "VC_WORKER_NUM": "2"}
    assert cluster.api.create("/api/v1/namespaces/default/services", service).status == 201
    assert (
        cluster.api.create(
            "/api/v1/namespaces/default/configmaps",
            {"metadata": {"name": "at-work-svc", "ownerReferences": reference}, "data": hosts},
        ).status
        == 201
    )


def make_waiting_job(cluster: Cluster) -> None:
    """Its pods are made and not placed; its group has the name that older releases gave."""
    owner = cluster.make(a_job("waiting", 2, "Pending", pending=2))
    cluster.make(a_group("waiting", 2, "Inqueue"), ownerReferences=owned_by(owner))
    for index in range(2):
        make_pod(cluster, owner, "waiting", index)


def make_flow(cluster: Cluster) -> None:
    """The first of two steps runs."""
    for name in ("load", "train"):
        template = a_job(name, 1, "")["spec"]
        cluster.make({"apiVersion": FLOW, "kind": "JobTemplate", "metadata": {"name": name}, "spec": template})
    flows = [{"name": "load"}, {"name": "train", "dependsOn": {"targets": ["load"]}}]
    flow = cluster.make({
        "apiVersion": FLOW, "kind": "JobFlow", "metadata": {"name": "pipeline"}, "spec": {"flows": flows, "jobRetainPolicy": "retain"},
        "status": {"state": {"phase": "Running"}, "runningJobs": ["pipeline-load"]},
    })  # fmt: skip
    marks = {"volcano.sh/createdByJobTemplate": "default.load", "volcano.sh/createdByJobFlow": "default.pipeline"}
    status = {"running": 1, "taskStatusCount": {"worker": {"phase": {"Running": 1}}}}
    step = cluster.make(
        a_job("pipeline-load", 1, "Running", **status), labels=marks, annotations=marks, ownerReferences=owned_by(flow)
    )
    group = f"pipeline-load-{step['metadata']['uid']}"
    cluster.make(a_group(group, 1, "Running", running=1), ownerReferences=owned_by(step))
    make_pod(cluster, step, group, 0, node="n1", phase="Running")


def a_group(name: str, members: int, phase: str, **status: Any) -> JSONObject:
    spec = {
        "minMember": members,
        "minTaskMember": {"worker": members},
        "queue": "default",
        "minResources": {"cpu": str(members)},
    }
    return {
        "apiVersion": GROUPS,
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": spec,
        "status": {"phase": phase, **status},
    }


def owned_by(owner: JSONObject) -> list[JSONObject]:
    known = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
    }
    return [{**known, "controller": True, "blockOwnerDeletion": True}]


def make_pod(cluster: Cluster, owner: JSONObject, group: str, index: int, *, node: str = "", phase: str = "") -> None:
    job, (task,) = owner["metadata"]["name"], owner["spec"]["tasks"]
    both = {
        "volcano.sh/job-name": job,
        "volcano.sh/queue-name": "default",
        "volcano.sh/task-spec": "worker",
        "volcano.sh/task-index": str(index),
    }
    annotations = {
        **both,
        "scheduling.k8s.io/group-name": group,
        "volcano.sh/job-version": "0",
        "volcano.sh/job-retry-count": "0",
        "volcano.sh/template-uid": f"{job}-worker",
    }
    metadata = {
        "name": f"{job}-worker-{index}",
        "labels": {**both, "volcano.sh/job-namespace": "default"},
        "annotations": annotations,
        "ownerReferences": owned_by(owner),
    }
    spec = {**task["template"]["spec"], "schedulerName": "volcano", **({"nodeName": node} if node else {})}
    made = cluster.api.create(pods(), {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    assert made.status == 201, made
    if phase:
        assert (
            cluster.api.merge(
                f"{pods(metadata['name'])}/status",
                {"status": {"phase": phase, "conditions": [{"type": "Ready", "status": "True"}]}},
            ).status
            == 200
        )


# -- what must hold -----------------------------------------------------------------------------------------------
def schemas() -> dict[tuple[str, str], StructuralSchema]:
    return {
        (f"{body['spec']['group']}/{version['name']}", body["spec"]["names"]["kind"]): compile_schema(
            version["schema"]["openAPIV3Schema"]
        )
        for body in crd_manifests()
        for version in body["spec"]["versions"]
    }


def without_history(body: JSONObject) -> JSONObject:
    return {**body, "metadata": {key: value for key, value in body["metadata"].items() if key != "managedFields"}}


@pytest.mark.parametrize(
    "body", [*whole_objects(), a_command()], ids=lambda body: f"{body['kind']}-{body['metadata']['name']}"
)
def test_our_definitions_know_every_field_of_the_reference(body: JSONObject):
    schema, given = schemas()[body["apiVersion"], body["kind"]], copy.deepcopy(body)

    assert schema.prune(given) == []
    assert schema.validate(given) == []
    assert given == body


def test_definitions_are_found_in_a_release(tmp_path: Path):
    first = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "a.batch.volcano.sh"},
             "spec": {"group": "batch.volcano.sh"}}  # fmt: skip
    with zipfile.ZipFile(tmp_path / "release.zip", "w") as archive:
        archive.writestr("m@v1/deep/er/chart/a.yaml", yaml.safe_dump({**first, "deep": True}, sort_keys=False))
        archive.writestr("m@v1/config/a.yaml", yaml.safe_dump_all([first, None, {"kind": "Other"}], sort_keys=False))
        archive.writestr(
            "m@v1/config/template.yaml",
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n{{ if .x }}: [\n",
        )
        archive.writestr(
            "m@v1/other.yaml",
            yaml.safe_dump({**first, "metadata": {"name": "b"}, "spec": {"group": "other.org"}}, sort_keys=False),
        )

    assert definitions_in(tmp_path / "release.zip") == [first]


def test_the_definitions_are_brought_up_to_date_in_place(upgraded: tuple[Cluster, dict[str, str]]):
    cluster, before = upgraded

    assert cluster.uids() == before
    ours = {body["metadata"]["name"]: body["spec"]["versions"][0]["schema"] for body in crd_manifests()}
    found = {name: cluster.api.get(f"{DEFINITIONS}/{name}").body["spec"]["versions"][0]["schema"] for name in ours}
    assert {name for name in ours if found[name] != ours[name]} == set()


def test_every_field_of_a_release_is_known_here():
    try:
        released = released_definitions(RELEASE)
    except Unavailable as error:
        pytest.skip(needs.reason(str(error), "make test-kubernetes with a network"))
    ours = {body["metadata"]["name"]: _schemas_of(body) for body in crd_manifests()}

    lost = [
        f"{body['metadata']['name']} {version}{path}"
        for body in released
        for version, schema in _schemas_of(body).items()
        for path in _unknown(schema, ours.get(body["metadata"]["name"], {}).get(version))
    ]

    assert lost == []


def _schemas_of(definition: dict[str, Any]) -> dict[str, Any]:
    return {version["name"]: version["schema"]["openAPIV3Schema"] for version in definition["spec"]["versions"]}


def _unknown(theirs: dict[str, Any], ours: Any, path: str = "") -> Iterator[str]:
    """Fields that would be pruned."""
    if not isinstance(ours, dict):
        yield path
    elif path != ".metadata" and not ours.get("x-kubernetes-preserve-unknown-fields"):
        for name, schema in theirs.get("properties", {}).items():
            yield from _unknown(
                schema, ours.get("properties", {}).get(name, ours.get("additionalProperties")), f"{path}.{name}"
            )
        for inside in ("items", "additionalProperties"):
            if isinstance(theirs.get(inside), dict):
                yield from _unknown(theirs[inside], ours.get(inside), f"{path}[]")


def test_no_object_is_rewritten_or_loses_anything(upgraded: tuple[Cluster, dict[str, str]]):
    cluster, _ = upgraded
    rules = schemas()
    assert len(cluster.kept) > 15

    for url, before in cluster.kept.items():
        after = cluster.api.get(url).body

        expected = copy.deepcopy(before)
        rules[before["apiVersion"], before["kind"]].default(expected)  # absent fields read as their defaults
        assert without_history(after) == without_history(expected), url


def test_what_runs_is_taken_over_and_ends_well(taken_over: tuple[Cluster, Components]):
    cluster, _ = taken_over
    names = ["at-work-worker-0", "at-work-worker-1"]
    before = {name: cluster.api.get(pods(name)).body["metadata"]["uid"] for name in names}
    beside = [f"/api/v1/namespaces/default/{name}" for name in ("services/at-work", "configmaps/at-work-svc")]
    made = [cluster.api.get(url).body["metadata"]["uid"] for url in beside]
    # The one that waited is placed: so somebody is at work, and has seen the others too
    wait_for(
        lambda: all(
            cluster.api.get(pods(f"waiting-worker-{index}")).body["spec"].get("nodeName") == "n1" for index in range(2)
        )
    )
    assert [cluster.api.get(url).body["metadata"]["uid"] for url in beside] == made

    for name in names:
        cluster.finish(name)
    done = wait_for(
        lambda: (job := cluster.api.get(jobs("at-work")).body)["status"]["state"]["phase"] == "Completed" and job
    )

    assert (done["status"]["succeeded"], done["status"].get("retryCount", 0)) == (2, 0)
    assert done["metadata"]["uid"] == cluster.kept[jobs("at-work")]["metadata"]["uid"]
    assert done["spec"] == cluster.kept[jobs("at-work")]["spec"]
    assert {name: cluster.api.get(pods(name)).body["metadata"]["uid"] for name in names} == before


def test_what_waited_keeps_its_pods_and_its_group_and_runs(taken_over: tuple[Cluster, Components]):
    cluster, _ = taken_over
    own = f"/apis/{GROUPS}/namespaces/default/podgroups"
    before = cluster.kept[f"{own}/waiting"]["metadata"]["uid"]
    for index in range(2):
        wait_for(lambda index=index: cluster.api.get(pods(f"waiting-worker-{index}")).body["spec"].get("nodeName"))
        cluster.api.merge(f"{pods(f'waiting-worker-{index}')}/status", {"status": {"phase": "Running"}})

    wait_for(lambda: cluster.api.get(jobs("waiting")).body["status"]["state"]["phase"] == "Running")

    groups = [
        group["metadata"]
        for group in cluster.api.get(own).body["items"]
        if group["metadata"]["name"].startswith("waiting")
    ]
    assert [(group["name"], group["uid"]) for group in groups] == [("waiting", before)]


def test_a_flow_goes_on_with_its_next_step(taken_over: tuple[Cluster, Components]):
    cluster, _ = taken_over
    flow = f"/apis/{FLOW}/namespaces/default/jobflows/pipeline"

    cluster.finish("pipeline-load-worker-0")
    wait_for(
        lambda: cluster.api.get(pods("pipeline-train-worker-0")).body.get("spec", {}).get("nodeName") == "n1",
        why="the next step is placed",
    )
    cluster.finish("pipeline-train-worker-0")

    wait_for(lambda: cluster.api.get(flow).body["status"]["state"]["phase"] == "Succeed")
    assert (
        cluster.api.get(jobs("pipeline-load")).body["metadata"]["uid"]
        == cluster.kept[jobs("pipeline-load")]["metadata"]["uid"]
    )


def test_going_back_loses_nothing_either(taken_over: tuple[Cluster, Components]):
    """What people wrote, and the record of what ended, is as it was; what our components brought up to date is newer."""
    cluster, ours = taken_over
    identities = cluster.uids()
    ours.stop()
    ours.running.clear()
    helm = find_helm()
    if helm is not None:
        run(cluster.plane, str(helm), "uninstall", "volcano", "--namespace", NAMESPACE)
    # The groups of jobs that have ended since are removed with their ends
    ended = [url for url in cluster.kept if any(f"podgroups/{job}-" in url for job in ("at-work", "pipeline-load"))]
    lasting = {url: body for url, body in cluster.kept.items() if url not in ended}
    running = {url: cluster.api.get(url).body for url in lasting}

    apply_with_kubectl(
        cluster.plane, yaml.safe_dump_all(cluster.definitions), "--field-manager=helm", "--force-conflicts"
    )

    assert cluster.uids() == identities
    for url, before in lasting.items():
        after = wait_for(lambda url=url: (found := cluster.api.get(url)).status == 200 and found.body)
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        # An open definition answers with what is stored, so without the defaults of ours
        assert contains(after.get("spec"), before.get("spec")), url
        assert contains(running[url].get("status"), after.get("status")), url
    for url in (jobs("whole"), f"/apis/{FLOW}/namespaces/default/jobflows/whole"):
        told, before = cluster.api.get(url).body["status"], cluster.kept[url]["status"]
        assert (told["state"], told["conditions"]) == (before["state"], before["conditions"])


def contains(whole: Any, part: Any) -> bool:
    """Whether everything of one value is in another; what is new beside it does not matter."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(
            key in whole and contains(whole[key], value) for key, value in part.items()
        )
    if isinstance(part, list):
        return isinstance(whole, list) and len(whole) == len(part) and all(map(contains, whole, part))
    return bool(whole == part) or part is None
