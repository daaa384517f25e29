"""The same requests to the embedded server and to a real one, and the same answers: codes, messages, objects, tables.

What differs on purpose is in docs/contract-differences.md.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests import needs
from tests.contract.bodies import a_config, a_pod
from tests.kubernetes.components import apply
from tests.kubernetes.control_plane import ControlPlane, binaries
from tests.running_server import Client, running_server
from volcano.api.schemas.crds import crd_manifests

pytestmark = [pytest.mark.kubernetes, pytest.mark.xdist_group("contract-kubernetes")]
BATCH = "/apis/batch.volcano.sh/v1alpha1/namespaces/same/jobs"
QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/same/podgroups"
PODS = "/api/v1/namespaces/same/pods"
CONFIGS = "/api/v1/namespaces/same/configmaps"
TABLE = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
MERGE, JSON_PATCH, STRATEGIC, APPLY = (
    "application/merge-patch+json", "application/json-patch+json", "application/strategic-merge-patch+json", "application/apply-patch+yaml",
)  # fmt: skip


class Ask(NamedTuple):
    """One request."""

    method: str
    path: str
    body: Any = None
    type: str = "application/json"
    query: dict[str, str] = {}
    headers: dict[str, str] = {}


@pytest.fixture(scope="module")
def both() -> Iterator[tuple[Client, Client]]:
    programs = binaries()
    if programs is None:
        pytest.skip(needs.CONTROL_PLANE)
    with (
        running_server() as running,
        tempfile.TemporaryDirectory() as folder,
        ControlPlane(Path(folder), programs, controls=False) as plane,
    ):
        clients = Client(running.kubeconfig), Client(plane.kubeconfig)
        apply(clients[1], crd_manifests())
        for client in clients:
            client.create("/api/v1/namespaces", {"metadata": {"name": "same"}})
            client.create("/api/v1/namespaces/same/serviceaccounts", {"metadata": {"name": "default"}})
        yield clients


VOLATILE = {"uid", "resourceVersion", "creationTimestamp", "managedFields", "selfLink", "remainingItemCount", "time"}


def plain(value: Any) -> Any:
    """Without what is different each time, and without what docs/contract-differences.md says of every answer."""
    if isinstance(value, dict):
        if "columnDefinitions" in value:
            columns = [{**column, "description": ""} for column in value["columnDefinitions"]]
            value = {**value, "columnDefinitions": columns}
        if value.get("kind") == "PodList":
            value = {**value, "items": [{**item, "kind": "Pod", "apiVersion": "v1"} for item in value["items"]]}
        kept = {key: plain(item) for key, item in value.items() if key not in VOLATILE and item is not None}
        if kept.get("kind") == "Status":
            details = {key: item for key, item in kept.pop("details", {}).items() if item}
            kept |= {"details": details} if details else {}
            if len(details.get("causes", ())) > 1:  # in no particular order
                details["causes"] = sorted(details["causes"], key=str)
                kept["message"] = str(kept["message"]).partition(": [")[0]
        return kept
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, str):
        value = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID", value)
        value = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME", value)
        return re.sub(r"\b\d+(ms|s)\b", "AGE", value)
    return value


def job(name: str = "j", **spec: Any) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "c", "image": "busybox"}]}}
    tasks = [{"name": "t", "replicas": 1, "template": template}]
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"tasks": tasks, **spec},
    }


def queue(name: str = "q", **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}, "spec": spec}


KNOWN: dict[str, set[int]] = {
    "jobs that make no sense": {11, 12, 16, 17},
    "patches of custom objects": {1, 6, 8},
    "pods and their subresources": {6, 11, 13},
    "config maps": {2, 3, 4, 9},
}
"""Requests that are answered differently, by story and number; docs/contract-differences.md says how and why."""

STORIES: dict[str, list[Ask]] = {
    "a job is made, read, listed and deleted": [
        Ask("POST", BATCH, job()),
        Ask("POST", BATCH, job()),
        Ask("GET", f"{BATCH}/j"),
        Ask("GET", f"{BATCH}/k"),
        Ask(
            "PATCH",
            f"{BATCH}/j/status",
            {"status": {"state": {"phase": "Running"}, "running": 1, "minAvailable": 1}},
            MERGE,
        ),
        Ask("GET", BATCH, headers=TABLE),
        Ask("GET", f"{BATCH}/j", headers=TABLE),
        Ask("DELETE", f"{BATCH}/j"),
        Ask("DELETE", f"{BATCH}/j"),
    ],
    "jobs that make no sense": [
        Ask("POST", BATCH, job(minAvailable=-1)),
        Ask("POST", BATCH, job(minAvailable="many")),
        Ask("POST", BATCH, job(maxRetry=-1, ttlSecondsAfterFinished=-1)),
        Ask("POST", BATCH, job(policies=[{"event": "NoSuchEvent", "action": "AbortJob"}])),
        Ask("POST", BATCH, job(policies=[{"event": "PodFailed", "action": "NoSuchAction"}])),
        Ask("POST", BATCH, job(queue="Capital")),
        Ask("POST", BATCH, job(volumes=[{"mountPath": ""}])),
        Ask("POST", BATCH, job(tasks=[{"name": "Task_1", "replicas": -1, "template": {}}])),
        Ask("POST", BATCH, job(tasks="none")),
        Ask("POST", BATCH, job("Upper")),
        Ask("POST", BATCH, {**job(), "kind": "Queue"}),
        Ask("POST", BATCH, {**job(), "apiVersion": "batch.volcano.sh/v1"}),
        Ask("POST", BATCH, {"metadata": {"name": "j"}}),
        Ask("POST", BATCH, {**job(), "spec": None}),
        Ask("POST", BATCH, {**job(), "metadata": {"name": "j", "namespace": "other"}}),
        Ask("POST", BATCH, {**job(), "metadata": {}}),
        Ask("POST", BATCH, job(unknownField=1), query={"fieldValidation": "Strict"}),
        Ask("POST", BATCH, job(unknownField=1), query={"fieldValidation": "Warn", "dryRun": "All"}),
        Ask("POST", BATCH, job(), query={"fieldValidation": "Sometimes"}),
        Ask("POST", BATCH, job(), query={"dryRun": "Some"}),
    ],
    "queues and groups": [
        Ask("POST", QUEUES, queue(weight=1)),
        Ask("POST", QUEUES, queue("bad", weight=-1)),
        Ask("POST", QUEUES, queue("bad", weight=1, capability={"cpu": "x"})),
        Ask("POST", QUEUES, queue("bad", weight=1, guarantee={"resource": {"cpu": {}}})),
        Ask("PATCH", f"{QUEUES}/q/status", {"status": {"state": "Open", "allocated": {"cpu": "1"}}}, MERGE),
        Ask("PATCH", f"{QUEUES}/q", {"spec": {"weight": 3}, "status": {"state": "Closed"}}, MERGE),
        Ask("GET", QUEUES, headers=TABLE),
        Ask(
            "POST",
            GROUPS,
            {
                "apiVersion": "scheduling.volcano.sh/v1beta1",
                "kind": "PodGroup",
                "metadata": {"name": "g"},
                "spec": {"minMember": 2},
            },
        ),
        Ask("PATCH", f"{GROUPS}/g", {"status": {"phase": "Inqueue"}}, MERGE),
        Ask("GET", GROUPS, headers=TABLE),
        Ask("DELETE", f"{GROUPS}/g", {"preconditions": {"uid": "no-such"}}),
        Ask("DELETE", f"{GROUPS}/g"),
        Ask("DELETE", f"{QUEUES}/q", {"propagationPolicy": "Sideways"}),
        Ask("DELETE", f"{QUEUES}/q"),
    ],
    "patches of custom objects": [
        Ask("POST", BATCH, job("p", minAvailable=1)),
        Ask("PATCH", f"{BATCH}/p", [{"op": "test", "path": "/spec/minAvailable", "value": 2}], JSON_PATCH),
        Ask("PATCH", f"{BATCH}/p", [{"op": "replace", "path": "/spec/none", "value": 2}], JSON_PATCH),
        Ask("PATCH", f"{BATCH}/p", [{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}], JSON_PATCH),
        Ask("PATCH", f"{BATCH}/p", {"spec": {"minAvailable": 1}}, STRATEGIC),
        Ask("PATCH", f"{BATCH}/p", {"metadata": {"resourceVersion": "1"}}, MERGE),
        Ask("PATCH", f"{BATCH}/p", {"metadata": {"uid": "other"}}, MERGE),
        Ask("PATCH", f"{BATCH}/p", {"metadata": {"name": "other"}}, MERGE),
        Ask("PATCH", f"{BATCH}/p", {"metadata": {"labels": {"a": "b c"}}}, MERGE),
        Ask("PATCH", f"{BATCH}/p", {"spec": {"minAvailable": None, "queue": "default"}}, MERGE),
        Ask("PATCH", f"{BATCH}/p", job("p", queue="default"), APPLY, {"fieldManager": "a"}),
        Ask("PATCH", f"{BATCH}/p", job("p", queue="other"), APPLY, {"fieldManager": "b"}),
        Ask("PATCH", f"{BATCH}/p", job("p", queue="other"), APPLY, {"fieldManager": "b", "force": "true"}),
        Ask("PATCH", f"{BATCH}/p", {}, "application/unknown"),
        Ask("PATCH", f"{BATCH}/none", {}, MERGE),
        Ask("PUT", f"{BATCH}/p", job("q")),
        Ask("DELETE", f"{BATCH}/p"),
    ],
    "pods and their subresources": [
        Ask("POST", PODS, a_pod("p", schedulerName="volcano")),
        Ask(
            "POST",
            f"{PODS}/p/binding",
            {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": "p"},
                "target": {"kind": "Node", "name": "n1"},
            },
        ),
        Ask(
            "POST",
            f"{PODS}/p/binding",
            {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": "p"},
                "target": {"kind": "Node", "name": "n2"},
            },
        ),
        Ask(
            "POST",
            f"{PODS}/none/binding",
            {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": "none"},
                "target": {"kind": "Node", "name": "n1"},
            },
        ),
        Ask(
            "PATCH",
            f"{PODS}/p/status",
            {"status": {"conditions": [{"type": "Ready", "status": "True"}], "phase": "Running"}},
            STRATEGIC,
        ),
        Ask(
            "PATCH",
            f"{PODS}/p/status",
            {"status": {"conditions": [{"type": "DisruptionTarget", "status": "True"}]}},
            STRATEGIC,
        ),
        Ask("PATCH", f"{PODS}/p", {"spec": {"nodeName": "n3"}}, MERGE),
        Ask("PATCH", f"{PODS}/p", {"metadata": {"annotations": {"a": "b"}}}, MERGE),
        Ask("GET", PODS, query={"fieldSelector": "spec.nodeName=n1,status.phase!=Failed"}),
        Ask("GET", PODS, query={"fieldSelector": "spec.nothing=x"}),
        Ask("GET", PODS, query={"labelSelector": "app in (p,q),!x"}),
        Ask("GET", PODS, query={"labelSelector": "app ~ p"}),
        Ask("GET", PODS, headers=TABLE),
        Ask("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 0}),
        Ask("GET", f"{PODS}/p"),
    ],
    "pods that make no sense": [
        Ask("POST", PODS, a_pod("x", containers=[])),
        Ask("POST", PODS, a_pod("x", containers=[{"name": "A_b", "image": ""}])),
        Ask("POST", PODS, a_pod("x", restartPolicy="Sometimes")),
        Ask(
            "POST",
            PODS,
            a_pod(
                "x",
                containers=[
                    {"name": "a", "image": "i", "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}
                ],
            ),
        ),
        Ask("POST", PODS, a_pod("x", schedulingGates=[{"name": "a/b"}, {"name": "a/b"}])),
        Ask("POST", PODS, a_pod("x", volumes=[{"name": "v"}])),
    ],
    "config maps": [
        Ask("POST", CONFIGS, a_config("c", a="b")),
        Ask("PATCH", f"{CONFIGS}/c", {"data": {"a": None, "x": "y"}}, MERGE),
        Ask("PATCH", f"{CONFIGS}/c", {"data": "text"}, MERGE),
        Ask("GET", CONFIGS, query={"limit": "-1"}),
        Ask("GET", CONFIGS, query={"continue": "nonsense"}),
        Ask("GET", CONFIGS, query={"resourceVersion": "abc"}),
        Ask("GET", CONFIGS, query={"resourceVersionMatch": "Exact"}),
        Ask("DELETE", f"{CONFIGS}/c", query={"gracePeriodSeconds": "-5"}),
        Ask("DELETE", CONFIGS, query={"labelSelector": "nothing=here"}),
        Ask("GET", "/apis/nothing.here/v1/things"),
        Ask("GET", "/api/v1/namespaces/none-such/configmaps"),
        Ask("POST", "/api/v1/namespaces/none-such/configmaps", a_config("c")),
        Ask("PUT", CONFIGS, a_config("c")),
    ],
}


def said(client: Client, ask: Ask) -> Any:
    answer = client(
        ask.method, ask.path, ask.body, query=ask.query or None, headers=ask.headers or None, content_type=ask.type
    )
    return {"code": answer.status, "warning": plain(answer.headers.get("warning", "")), "body": _body(answer)}


def _body(answer: Any) -> Any:
    try:
        return plain(answer.body)
    except ValueError:
        return plain(answer.raw.decode().strip())


def parts(ours: Any, theirs: Any, path: str = "") -> Iterator[str]:
    """Where two answers differ."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in sorted({*ours, *theirs}):
            yield from parts(ours.get(key), theirs.get(key), f"{path}.{key}")
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for number, pair in enumerate(zip(ours, theirs, strict=True)):
            yield from parts(*pair, f"{path}[{number}]")
    elif ours != theirs:
        yield f"{path}: ours {ours!r}, theirs {theirs!r}"


@pytest.mark.parametrize("story", STORIES)
def test_both_servers_say_the_same(both: tuple[Client, Client], story: str):
    differences = {}
    for number, ask in enumerate(STORIES[story]):
        ours, theirs = (said(client, ask) for client in both)
        if ours != theirs:
            differences[number] = f"{number}. {ask.method} {ask.path} {ask.query}\n  " + "\n  ".join(
                parts(ours, theirs)
            )

    known = KNOWN.get(story, set())
    fresh = [text for number, text in differences.items() if number not in known]
    assert fresh == [], "\n" + "\n".join(fresh)
    assert known - set(differences) == set(), "these are the same by now: take them out of KNOWN and of the page"
