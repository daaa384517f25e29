"""Admission on a real API server, once as webhooks and once as policies alone: one checklist, the same answers."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.running_server import Answer, Client
from volcano.admission.chain import WEBHOOKS
from volcano.admission.policies import policy_manifests, submitter_manifests
from volcano.admission.webhook.registration import configuration_name
from volcano.api.batch import Job
from volcano.api.errors import ApiError
from volcano.api.scheduling import Queue
from volcano.install.values import Values
from volcano.install.workloads import SERVICE, webhooks

from .admission_cases import (
    HIERARCHY,
    JOBS,
    OTHERS,
    QUEUE_DELETIONS,
    QUEUE_UPDATES,
    QUEUES,
    STANDING,
    STANDING_QUEUES,
    UPDATES,
    WEIGHTS,
    Case,
    a_group,
    a_job,
    a_pod,
    a_queue,
    a_task,
    a_template,
)
from .components import NAMESPACE, Components, Process, apply, discover, path_of, wait_for
from .control_plane import free_port
from .real_system import RealSystem

SERVICES = f"/api/v1/namespaces/{NAMESPACE}/services/"
QUEUE_PATH = "/apis/scheduling.volcano.sh/v1beta1/queues"
JOB_PATH = "/apis/batch.volcano.sh/v1alpha1/namespaces/{}/jobs"
DRY = {"dryRun": "All"}
PLACE = "admission-cases"
"""The namespace of what stands there already."""
DUPLICATED = a_job(a_task("a"), a_task("a"), name="probe")
JSONObject = dict[str, Any]


def jobs(namespace: str) -> str:
    return JOB_PATH.format(namespace)


def refused(answer: Answer) -> bool:
    return answer.status >= 400 and "denied" in answer.body["message"]


# -- admission at work --------------------------------------------------------------------------------------------
@pytest.fixture(scope="module", params=["webhook", "policies"])
def mode(
    request: pytest.FixtureRequest,
    standing: None,
    running: Components,
    api: Client,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[str]:
    """Admission is at work: by webhooks, the chart's and those that are not in the chart, or by policies."""
    path = jobs("default")
    if request.param == "policies":
        bodies = policy_manifests()
        apply(api, bodies)
    else:
        service = api.get(SERVICES + SERVICE).body
        bodies = serve_webhooks(running, api, tmp_path_factory.mktemp("webhook"))
        others = serve_others(running, api)
    wait_for(lambda: refused(api.create(path, DUPLICATED, query=DRY)), why="admission works")
    wait_for(lambda: filled_in(api), why="admission fills in")
    yield request.param
    if request.param == "policies":
        remove(api, bodies)
    else:
        remove(api, [*bodies, *others])
        put_back(api, service)
    wait_for(lambda: not refused(api.create(path, DUPLICATED, query=DRY)), why="it is off")
    wait_for(lambda: not filled_in(api), why="it is off")


def filled_in(api: Client) -> bool:
    made = api.create(jobs("default"), a_job(name="probe"), query=DRY).body
    return bool(made.get("spec", {}).get("schedulerName") == "volcano")


@pytest.fixture(scope="module")
def standing(running: Components, api: Client) -> Iterator[None]:
    """What updates and references of the cases are about, as it was before there was any admission."""
    assert api.create("/api/v1/namespaces", {"metadata": {"name": PLACE}}).status == 201
    assert api.create(jobs(PLACE), STANDING).status == 201
    for body in STANDING_QUEUES:
        assert api.create(QUEUE_PATH, body).status == 201
    wait_for(lambda: all(state(api, body["metadata"]["name"]) == "Open" for body in STANDING_QUEUES))
    # The controllers leave a closed queue closed, and a closing one closing while there is a group in it
    blocking = {**a_group(queue="case-closing"), "metadata": {"name": "blocking"}}
    assert api.create(f"/apis/scheduling.volcano.sh/v1beta1/namespaces/{PLACE}/podgroups", blocking).status == 201
    for name, wanted in (("case-closed", "Closed"), ("case-closing", "Closing")):
        target = {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "name": name,
            "uid": api.get(f"{QUEUE_PATH}/{name}").body["metadata"]["uid"],
        }
        command = {
            "apiVersion": "bus.volcano.sh/v1alpha1",
            "kind": "Command",
            "metadata": {"name": name},
            "target": target,
            "action": "CloseQueue",
        }
        assert api.create(f"/apis/bus.volcano.sh/v1alpha1/namespaces/{PLACE}/commands", command).status == 201
        wait_for(lambda name=name, wanted=wanted: state(api, name) == wanted)
    yield
    api.delete(f"/api/v1/namespaces/{PLACE}")
    for body in reversed(STANDING_QUEUES):
        api.delete(f"{QUEUE_PATH}/{body['metadata']['name']}")


def state(api: Client, queue: str) -> str:
    return str(api.get(f"{QUEUE_PATH}/{queue}").body.get("status", {}).get("state", ""))


def serve_webhooks(running: Components, api: Client, folder: Path) -> list[JSONObject]:
    """As in a cluster: the certificate job, then the webhook with its files, reached through its Service."""
    made = running.start("webhook-certificates", "--kubeconfig", str(running.account("volcano-admission-init")))
    assert made.process.wait(60) == 0, made.log
    secret = api.get(f"/api/v1/namespaces/{NAMESPACE}/secrets/volcano-admission-secret").body
    for name, content in secret["data"].items():
        (folder / name).write_bytes(base64.b64decode(content))
    port = free_port()
    # There is no pod network here: the service's name leads to this machine
    api.delete(SERVICES + SERVICE)
    named = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": SERVICE},
        "spec": {"type": "ExternalName", "externalName": "localhost"},
    }
    assert api.create(SERVICES.rstrip("/"), named).status == 201
    registered = list(webhooks(Values()))
    bodies = [*registered, *submitter_manifests()]
    for body in registered:
        for entry in body["webhooks"]:
            entry["clientConfig"]["service"]["port"] = port
    apply(api, bodies)
    running.webhook(
        "--port", str(port), "--tls-cert-file", str(folder / "tls.crt"),
        "--tls-private-key-file", str(folder / "tls.key"), "--ca-cert-file", str(folder / "ca.crt"),
    )  # fmt: skip
    return bodies


def serve_others(running: Components, api: Client) -> list[JSONObject]:
    """Those that the chart leaves out, by a second process that registers itself."""
    left_out = [webhook for webhook in WEBHOOKS if not webhook.in_chart]
    port = free_port()
    words = [
        "--kubeconfig", str(running.plane.kubeconfig), "--listen-address", "127.0.0.1", "--port", str(port),
        "--webhook-url", f"https://127.0.0.1:{port}", "--enabled-admission", ",".join(webhook.path for webhook in left_out),
    ]  # fmt: skip
    process: Process = running.start("webhook-manager", *words)
    process.wait_for_word("serving ")
    return [
        {"apiVersion": "admissionregistration.k8s.io/v1", "kind": f"{webhook.kind.capitalize()}WebhookConfiguration",
         "metadata": {"name": configuration_name(webhook.path)}}
        for webhook in left_out
    ]  # fmt: skip


def remove(api: Client, bodies: list[JSONObject]) -> None:
    plurals = discover(api)
    for body in bodies:
        assert api.delete(f"{path_of(body, plurals)}/{body['metadata']['name']}").status == 200, body


def put_back(api: Client, service: JSONObject) -> None:
    api.delete(SERVICES + SERVICE)
    kept = {key: service["metadata"][key] for key in ("name", "labels", "annotations") if key in service["metadata"]}
    spec = {key: service["spec"][key] for key in ("type", "selector", "ports")}
    assert api.create(SERVICES.rstrip("/"), {**service, "metadata": kept, "spec": spec}).status == 201


@pytest.fixture(scope="module")
def plurals(api: Client, standing: None) -> dict[tuple[str, str], tuple[str, bool]]:
    return discover(api)


def test_a_gpu_that_is_only_requested_gets_its_limit(mode: str, api: Client) -> None:
    asked = {"requests": {"cpu": "1", "nvidia.com/gpu": "2"}}
    job = a_job(a_task(template=a_template(resources=asked)), name="gpu")

    made = api.create(jobs("default"), job, query=DRY).body

    resources = made["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["resources"]
    assert resources["limits"] == {"nvidia.com/gpu": "2"}


# -- the checklist ------------------------------------------------------------------------------------------------
def cases(*lists: list[Case]) -> Any:
    found = [case for each in lists for case in each]
    return pytest.mark.parametrize("case", found, ids=[f"{case.body['kind']}: {case.title}" for case in found])


def check(case: Case, mode: str, answer: Answer) -> None:
    """The answer is that of the table; what only the webhook can know, policies let pass."""
    if not case.words or (case.by and case.by != mode):
        assert answer.status in (200, 201), answer
        return
    assert answer.status >= 400, answer
    assert [words for words in case.words if words not in answer.body["message"]] == [], answer.body["message"]


@cases(JOBS, QUEUES, OTHERS)
def test_an_object_is_admitted_or_refused(mode: str, api: Client, plurals: Any, case: Case):
    check(case, mode, api.create(path_of(case.body, plurals), case.body, query=DRY))


@cases(UPDATES, QUEUE_UPDATES)
def test_a_change_is_admitted_or_refused(mode: str, api: Client, plurals: Any, case: Case):
    metadata = {**case.body["metadata"], "namespace": PLACE}
    url = f"{path_of({**case.body, 'metadata': metadata}, plurals)}/{metadata['name']}"
    found = api.get(url).body
    # Only what the case changes is changed: the rest is as the server and the controllers made it
    new = merged(found, case.old, case.body)

    check(case, mode, api("PUT", url, new, query=DRY))


def merged(found: Any, old: Any, new: Any) -> Any:
    """What is there, with the difference between two descriptions of it."""
    if isinstance(found, dict) and isinstance(old, dict) and isinstance(new, dict):
        kept = {key: value for key, value in found.items() if key not in old or key in new}
        return kept | {
            key: merged(found.get(key), old.get(key), value) for key, value in new.items() if value != old.get(key)
        }
    if (
        isinstance(found, list)
        and isinstance(old, list)
        and isinstance(new, list)
        and len(found) == len(old) == len(new)
    ):
        return [merged(*three) for three in zip(found, old, new, strict=True)]
    return found if old == new else new


@cases(QUEUE_DELETIONS)
def test_a_deletion_is_admitted_or_refused(mode: str, api: Client, case: Case):
    check(case, mode, api.delete(f"{QUEUE_PATH}/{case.body['metadata']['name']}", dryRun="All"))


def test_what_is_refused_is_not_stored(mode: str, api: Client, namespace: str):
    assert refused(api.create(jobs(namespace), DUPLICATED))

    assert api.get(jobs(namespace)).body["items"] == []


# -- defaults -----------------------------------------------------------------------------------------------------
def made(api: Client, path: str, body: JSONObject) -> JSONObject:
    answer = api.create(path, body, query=DRY)
    assert answer.status == 201, answer
    found: JSONObject = answer.body
    return found


def test_a_job_that_says_nothing_gets_its_defaults(mode: str, api: Client, namespace: str):
    on_host = a_template()
    on_host["spec"]["hostNetwork"] = True
    partitioned = {"totalPartitions": 3, "partitionSize": 2, "minPartitions": 2}
    tasks = [
        {"replicas": 2, "template": a_template()},
        {"replicas": 1, "template": on_host, "maxRetry": 7},
        {"replicas": 6, "template": a_template(), "partitionPolicy": partitioned},
    ]

    spec = made(api, jobs(namespace), a_job(*tasks, maxRetry=0, minAvailable=0))["spec"]

    assert (spec["queue"], spec["schedulerName"], spec["maxRetry"], spec["minAvailable"]) == (
        "default",
        "volcano",
        3,
        7,
    )
    assert [task["name"] for task in spec["tasks"]] == ["default0", "default1", "default2"]
    assert [task["minAvailable"] for task in spec["tasks"]] == [2, 1, 4]
    assert [task["maxRetry"] for task in spec["tasks"]] == [3, 7, 3]
    assert [task["template"]["spec"].get("dnsPolicy") for task in spec["tasks"]] == [
        None,
        "ClusterFirstWithHostNet",
        None,
    ]


def test_what_a_job_says_stays(mode: str, api: Client, namespace: str):
    job = a_job(
        a_task("a", 4, minAvailable=2, maxRetry=7),
        a_task("b", 1, minAvailable=0, maxRetry=1),
        minAvailable=1,
        maxRetry=5,
        schedulerName="other",
        queue="default",
    )

    assert made(api, jobs(namespace), job)["spec"] == job["spec"]


@pytest.mark.parametrize(
    ("plugin", "needs"),
    [("tensorflow", ["svc"]), ("pytorch", ["svc"]), ("ray", ["svc"]), ("mpi", ["ssh", "svc"]), ("env", [])],
)
def test_a_framework_brings_the_plugins_that_it_needs(
    mode: str, api: Client, namespace: str, plugin: str, needs: list[str]
):
    plugins = made(api, jobs(namespace), a_job(a_task("master"), plugins={plugin: ["--x=1"]}))["spec"]["plugins"]

    assert plugins == {plugin: ["--x=1"], **{name: [] for name in needs}}


def test_a_plugin_that_is_listed_keeps_its_arguments(mode: str, api: Client, namespace: str):
    given = {"mpi": [], "svc": ["--inject-hosts-env=false"]}

    assert made(api, jobs(namespace), a_job(a_task("master"), plugins=given))["spec"]["plugins"] == {**given, "ssh": []}


def test_a_queue_that_says_nothing_gets_its_defaults(mode: str, api: Client):
    body = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "subject"}}

    for spec in ({}, {"spec": {}}, {"spec": {"reclaimable": False, "weight": 7}}):
        found = made(api, QUEUE_PATH, {**body, **spec})["spec"]
        assert (found["weight"], found["reclaimable"]) == ((7, False) if spec.get("spec") else (1, True))
        assert "parent" not in found


def test_a_hierarchy_gets_its_root(mode: str, api: Client):
    below = made(api, QUEUE_PATH, a_queue(annotations={HIERARCHY: "sci/dev", WEIGHTS: "2/3"}))
    whole = made(api, QUEUE_PATH, a_queue(annotations={HIERARCHY: "root/sci", WEIGHTS: "1/2"}))

    assert below["metadata"]["annotations"] == {HIERARCHY: "root/sci/dev", WEIGHTS: "1/2/3"}
    assert whole["metadata"]["annotations"] == {HIERARCHY: "root/sci", WEIGHTS: "1/2"}


def test_a_group_goes_where_its_namespace_says(mode: str, api: Client, namespace: str):
    path = f"/apis/scheduling.volcano.sh/v1beta1/namespaces/{namespace}/podgroups"
    assert made(api, path, a_group())["spec"]["queue"] == "default"
    assert (
        api.merge(
            f"/api/v1/namespaces/{namespace}",
            {"metadata": {"annotations": {"scheduling.volcano.sh/queue-name": "case-child"}}},
        ).status
        == 200
    )

    wait_for(lambda: made(api, path, a_group())["spec"]["queue"] == "case-child", why="the namespace's word is known")
    assert made(api, path, a_group(queue="default"))["spec"]["queue"] == "case-child"


def test_pods_of_nobodys_concern_come_out_as_they_were(mode: str, api: Client, namespace: str):
    pod = a_pod(schedulerName="default-scheduler", nodeSelector={"a": "b"})

    spec = made(api, f"/api/v1/namespaces/{namespace}/pods", pod)["spec"]

    assert (spec["schedulerName"], spec["nodeSelector"]) == ("default-scheduler", {"a": "b"})


def test_pods_of_this_project_are_left_to_the_scheduler_of_the_cluster(mode: str, api: Client, installed: str):
    """Else nobody would start the scheduler."""
    deployment = api.get(f"/apis/apps/v1/namespaces/{installed}/deployments/volcano-scheduler").body
    template = deployment["spec"]["template"]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**template["metadata"], "name": "subject"},
        "spec": template["spec"],
    }

    assert made(api, f"/api/v1/namespaces/{installed}/pods", pod)["spec"]["schedulerName"] == "default-scheduler"


# -- who submitted it ---------------------------------------------------------------------------------------------
SUBMITTED_BY = "volcano.sh/submitted-by"
SUBMITTED = {
    "Job": ("/apis/batch.volcano.sh/v1alpha1/namespaces/{}/jobs", lambda: a_job(name="own")),
    "CronJob": (
        "/apis/batch.volcano.sh/v1alpha1/namespaces/{}/cronjobs",
        lambda: {"metadata": {"name": "own"}, "spec": {
            "schedule": "0 0 1 1 *", "concurrencyPolicy": "Allow", "jobTemplate": {"spec": a_job(name="own")["spec"]},
        }},
    ),
    "JobFlow": (
        "/apis/flow.volcano.sh/v1alpha1/namespaces/{}/jobflows",
        lambda: {"metadata": {"name": "own"}, "spec": {"flows": [], "jobRetainPolicy": "retain"}},
    ),
    "PodGroup": (
        "/apis/scheduling.volcano.sh/v1beta1/namespaces/{}/podgroups",
        lambda: {**a_group(), "metadata": {"name": "own"}},
    ),
}  # fmt: skip


def as_user(name: str) -> dict[str, str]:
    """An administrator by another name."""
    return {"Impersonate-User": name, "Impersonate-Group": "system:masters"}


@pytest.mark.parametrize("kind", SUBMITTED)
def test_nobody_changes_who_submitted_an_object(mode: str, api: Client, namespace: str, kind: str):
    path, body = SUBMITTED[kind][0].format(namespace), SUBMITTED[kind][1]()
    group_version = "/".join(path.split("/")[2:4])
    body |= {"apiVersion": group_version, "kind": kind}
    body["metadata"]["annotations"] = {SUBMITTED_BY: "somebody-else"}
    assert api("POST", path, body, headers=as_user("ada")).status == 201
    found = api.get(f"{path}/own").body
    assert found["metadata"]["annotations"][SUBMITTED_BY] == "ada"

    for named in ("eve", "", None):
        patch = {"metadata": {"annotations": {SUBMITTED_BY: named}}}
        answer = api("PATCH", f"{path}/own", patch, headers=as_user("eve"), content_type="application/merge-patch+json")
        assert answer.status >= 400 and "cannot be changed or removed" in answer.body["message"], (named, answer)
    other = api.merge(f"{path}/own", {"metadata": {"annotations": {"other": "x"}}})

    assert other.status == 200, other
    assert other.body["metadata"]["annotations"][SUBMITTED_BY] == "ada"
    assert api.delete(f"{path}/own").status == 200


async def test_what_components_make_of_a_job_names_its_submitter(mode: str, system: RealSystem, api: Client):
    """Their own writes pass: the PodGroup is made, changed and admitted, and the pods run."""
    body = a_job(a_task("a", 2), name="mine", minAvailable=1)
    assert api("POST", jobs(system.namespace), body, headers=as_user("ada")).status == 201
    await system.until(lambda: system.phase("mine") == "Running")
    changed = api.merge(f"{jobs(system.namespace)}/mine", {"spec": {"minAvailable": 2}})
    assert changed.status == 200, changed

    await system.until(lambda: [group.spec.min_member for group in system.groups()] == [2])

    assert [group.annotations[SUBMITTED_BY] for group in system.groups()] == ["ada"]
    await system.delete(Job, "mine")
    await system.until(lambda: not system.groups())


# -- what it means for work ---------------------------------------------------------------------------------------
async def test_a_closing_queue_keeps_its_work_and_takes_no_more(mode: str, system: RealSystem):
    name = f"q-{system.namespace}"

    def told() -> str:
        found = system.get(Queue, name)
        return found.status.state if found else ""

    async def order(action: str) -> None:
        target = {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "name": name,
            "uid": system.get(Queue, name).uid,
        }
        await system.apply(
            {
                "apiVersion": "bus.volcano.sh/v1alpha1",
                "kind": "Command",
                "metadata": {"generateName": "c-"},
                "target": target,
                "action": action,
            }
        )

    await system.apply(a_queue(name))
    await system.until(lambda: told() == "Open")
    await system.apply(a_job(name="inside", queue=name))
    await system.until(lambda: system.phase("inside") == "Running")
    (pod,) = system.pods("inside")
    await order("CloseQueue")
    await system.until(lambda: told() == "Closing")

    # One more: the webhook says no, policies cannot know, and then it waits and says why
    if mode == "webhook":
        with pytest.raises(ApiError, match=r"state `Open`, queue `.*` status is `Closing`"):
            await system.apply(a_job(name="late", queue=name))
    else:
        await system.apply(a_job(name="late", queue=name))
        await system.until(
            lambda: "queue" in system.job("late").status.state.message.lower(), why="it says why it waits"
        )
        assert not any(each.spec.node_name for each in system.pods("late"))
        await system.delete(Job, "late")
        await system.until(lambda: system.get(Job, "late") is None)
    assert (system.phase("inside"), [each.uid for each in system.pods("inside")]) == ("Running", [pod.uid])
    await system.delete(Job, "inside")
    await system.until(lambda: told() == "Closed")
    await order("OpenQueue")
    await system.until(lambda: told() == "Open")
    await system.apply(a_job(name="again", queue=name))
    await system.until(lambda: system.phase("again") == "Running")

    await system.delete(Job, "again")
    await system.until(lambda: not system.groups())
    await system.delete(Queue, name)
