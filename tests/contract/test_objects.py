"""Create, read, update, delete: what any client may rely on."""

from __future__ import annotations

import pytest

from tests.contract.bodies import a_config, a_pod
from tests.running_server import Client


def test_a_created_object_has_what_the_server_gives_it(api: Client, configs: str):
    answer = api.create(configs, a_config("c", key="value"))

    assert answer.status == 201
    metadata = answer.body["metadata"]
    assert {"uid", "creationTimestamp", "resourceVersion"} <= metadata.keys()
    assert api.get(f"{configs}/c").body["data"] == {"key": "value"}


def test_a_name_can_be_taken_only_once(api: Client, configs: str):
    api.create(configs, a_config("c"))

    answer = api.create(configs, a_config("c"))

    assert answer.status == 409
    assert answer.body["reason"] == "AlreadyExists"
    assert answer.body["message"] == 'configmaps "c" already exists'


def test_generated_names_differ(api: Client, configs: str):
    body = {"metadata": {"generateName": "made-"}}

    names = {api.create(configs, body).body["metadata"]["name"] for _ in range(5)}

    assert len(names) == 5
    assert all(name.startswith("made-") and len(name) == len("made-") + 5 for name in names)


def test_a_dry_run_leaves_nothing_behind(api: Client, configs: str):
    answer = api.create(configs, a_config("c"), query={"dryRun": "All"})

    assert answer.status == 201
    assert answer.body["metadata"]["uid"]
    assert api.get(f"{configs}/c").status == 404


@pytest.mark.parametrize(("mode", "status"), [("Strict", 400), ("Warn", 201), ("Ignore", 201)])
def test_unknown_fields_are_treated_as_the_client_asks(api: Client, configs: str, mode: str, status: int):
    answer = api.create(configs, a_config("c") | {"nonsense": 1}, query={"fieldValidation": mode})

    assert answer.status == status
    if mode == "Strict":
        assert 'strict decoding error: unknown field "nonsense"' in answer.body["message"]
    else:
        assert "nonsense" not in answer.body
        assert ("warning" in answer.headers) is (mode == "Warn")


def test_a_stale_update_is_a_conflict_and_changes_nothing(api: Client, configs: str):
    made = api.create(configs, a_config("c", key="1")).body
    api("PUT", f"{configs}/c", made | {"data": {"key": "2"}})

    answer = api("PUT", f"{configs}/c", made | {"data": {"key": "3"}})

    assert answer.status == 409
    assert answer.body["reason"] == "Conflict"
    assert "the object has been modified" in answer.body["message"]
    assert api.get(f"{configs}/c").body["data"] == {"key": "2"}


def test_an_update_that_changes_nothing_keeps_the_revision(api: Client, configs: str):
    made = api.create(configs, a_config("c", key="1")).body

    again = api("PUT", f"{configs}/c", made)

    assert again.body["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


def test_an_update_cannot_change_what_the_server_gave(api: Client, configs: str):
    made = api.create(configs, a_config("c")).body
    made["metadata"]["creationTimestamp"] = "2001-01-01T00:00:00Z"
    made["metadata"]["labels"] = {"a": "b"}

    changed = api("PUT", f"{configs}/c", made).body

    assert changed["metadata"]["creationTimestamp"] != "2001-01-01T00:00:00Z"
    assert changed["metadata"]["labels"] == {"a": "b"}


def test_another_uid_in_an_update_is_a_conflict(api: Client, configs: str):
    made = api.create(configs, a_config("c")).body
    made["metadata"]["uid"] = "00000000-0000-0000-0000-000000000000"

    assert api("PUT", f"{configs}/c", made).status == 409


def test_the_spec_and_the_status_of_a_pod_are_written_apart(api: Client, pods: str):
    made = api.create(pods, a_pod() | {"status": {"phase": "Running"}}).body
    assert made["status"]["phase"] == "Pending"

    changed = api.merge(f"{pods}/p/status", {"status": {"phase": "Running"}, "spec": {"nodeName": "n"}})

    assert changed.status == 200
    assert changed.body["status"]["phase"] == "Running"
    assert "nodeName" not in changed.body["spec"]


def test_a_merge_patch_merges_and_removes(api: Client, configs: str):
    api.create(configs, a_config("c", a="1", b="2"))

    answer = api.merge(f"{configs}/c", {"data": {"a": None, "c": "3"}})

    assert answer.body["data"] == {"b": "2", "c": "3"}


def test_a_json_patch_applies_all_or_nothing(api: Client, configs: str):
    api.create(configs, a_config("c", a="1"))
    operations = [{"op": "add", "path": "/data/b", "value": "2"}, {"op": "test", "path": "/data/a", "value": "9"}]

    refused = api("PATCH", f"{configs}/c", operations, content_type="application/json-patch+json")
    done = api("PATCH", f"{configs}/c", operations[:1], content_type="application/json-patch+json")

    assert refused.status == 422
    assert done.body["data"] == {"a": "1", "b": "2"}


def test_a_strategic_patch_merges_lists_by_their_key(api: Client, pods: str):
    pod = a_pod()
    pod["spec"]["containers"].append({"name": "side", "image": "one"})
    api.create(pods, pod)

    answer = api(
        "PATCH", f"{pods}/p", {"spec": {"containers": [{"name": "side", "image": "two"}]}},
        content_type="application/strategic-merge-patch+json",
    )  # fmt: skip

    assert [c["image"] for c in answer.body["spec"]["containers"]] == ["busybox", "two"]


def test_a_patch_of_an_unknown_kind_is_refused(api: Client, configs: str):
    api.create(configs, a_config("c"))

    assert api("PATCH", f"{configs}/c", {}, content_type="application/json").status == 415


def test_a_patch_of_what_is_not_there_is_not_found(api: Client, configs: str):
    assert api.merge(f"{configs}/none", {"data": {}}).status == 404


def test_a_pod_whose_spec_is_changed_is_refused(api: Client, pods: str):
    api.create(pods, a_pod())

    answer = api.merge(f"{pods}/p", {"spec": {"restartPolicy": "Never"}})

    assert answer.status == 422
    assert "pod updates may not change fields other than" in answer.body["message"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"spec": {}}, "spec.containers: Required value"),
        ({"spec": {"containers": [{"image": "x"}]}}, "spec.containers[0].name: Required value"),
        ({"spec": {"containers": [{"name": "a", "image": "x"}], "restartPolicy": "Sometimes"}}, "spec.restartPolicy: Unsupported value"),
        ({"metadata": {"name": "Bad_Name"}}, "metadata.name: Invalid value"),
        ({"metadata": {"labels": {"a": "not valid!"}}}, "metadata.labels: Invalid value"),
    ],
)  # fmt: skip
def test_a_bad_pod_is_refused_with_the_path(api: Client, pods: str, body: dict, message: str):
    pod = a_pod()
    pod["metadata"] |= body.get("metadata", {})
    pod["spec"] = body.get("spec", pod["spec"])

    answer = api.create(pods, pod)

    assert answer.status == 422, answer
    assert answer.body["reason"] == "Invalid"
    assert message in answer.body["message"]
    assert answer.body["details"]["causes"]


def test_a_bad_quantity_is_refused_with_the_path(api: Client, pods: str):
    pod = a_pod()
    pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "lots"}}

    answer = api.create(pods, pod)

    assert answer.status in (400, 422)
    assert "quantities must match the regular expression" in answer.body["message"]


def test_what_is_made_in_a_missing_namespace_is_not_found(api: Client):
    answer = api.create("/api/v1/namespaces/nowhere/pods", a_pod())

    assert answer.status == 404
    assert 'namespaces "nowhere" not found' in answer.body["message"]


def test_the_kind_must_fit_the_url(api: Client, configs: str):
    assert api.create(configs, a_pod()).status == 400


def test_the_name_must_fit_the_url(api: Client, configs: str):
    made = api.create(configs, a_config("c")).body
    made["metadata"]["name"] = "d"

    assert api("PUT", f"{configs}/c", made).status == 400


@pytest.mark.parametrize("path", ["/api/v1/nonsense", "/apis/none.example/v1/things", "/api/v2/pods", "/nonsense"])
def test_what_is_not_served_is_not_found(api: Client, path: str):
    answer = api.get(path)

    assert answer.status == 404


def test_a_method_that_makes_no_sense_is_not_allowed(api: Client, pods: str):
    api.create(pods, a_pod())

    assert api.create(f"{pods}/p", a_pod()).status == 405
    assert api("PUT", pods, a_pod()).status == 405


def test_secrets_take_texts_and_keep_bytes(api: Client, namespace: str):
    path = f"/api/v1/namespaces/{namespace}/secrets"

    made = api.create(path, {"metadata": {"name": "s"}, "stringData": {"word": "hello"}}).body

    assert made["data"] == {"word": "aGVsbG8="}
    assert "stringData" not in made
    assert made["type"] == "Opaque"


def test_a_priority_class_sets_a_pods_priority(api: Client, pods: str):
    made = api.create(pods, a_pod(priorityClassName="system-cluster-critical")).body
    missing = api.create(pods, a_pod("q", priorityClassName="none-such"))

    assert made["spec"]["priority"] == 2_000_000_000
    assert missing.status == 403
    assert "no PriorityClass with name none-such was found" in missing.body["message"]


def test_a_quota_limits_what_is_made(api: Client, namespace: str, pods: str):
    make_quota(api, namespace, {"count/configmaps": "1"})
    configs = f"/api/v1/namespaces/{namespace}/configmaps"

    codes = [api.create(configs, a_config(f"c{n}")).status for n in range(4)]

    assert 201 in codes
    assert codes[-1] == 403


SIDECAR = {
    "containers": [{"name": "a", "image": "b", "resources": {"requests": {"cpu": "1"}}}],
    "initContainers": [
        {"name": "s", "image": "b", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}},
    ],
}
POD_LEVEL = {
    "containers": [{"name": "a", "image": "b"}],
    "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "2"}},
}
INIT = {
    "containers": [{"name": "a", "image": "b", "resources": {"requests": {"cpu": "1"}}}],
    "initContainers": [{"name": "i", "image": "b", "resources": {"requests": {"cpu": "2"}}}],
}
UNSTATED = {"containers": [{"name": "a", "image": "b"}, {"name": "c", "image": "b"}]}
TOO_MUCH = "exceeded quota: q, requested: requests.cpu=2, used: requests.cpu=0, limited: requests.cpu=1"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (SIDECAR, TOO_MUCH),
        (POD_LEVEL, TOO_MUCH),
        (INIT, TOO_MUCH),
        (UNSTATED, "failed quota: q: must specify requests.cpu for: a,c"),
    ],
    ids=["sidecar", "pod-level", "init container", "unstated"],
)
def test_a_quota_counts_all_that_a_pod_requests(api: Client, namespace: str, pods: str, spec: dict, message: str):
    make_quota(api, namespace, {"requests.cpu": "1"})

    answer = api.create(pods, {"metadata": {"name": "p"}, "spec": spec})

    assert (answer.status, answer.body["message"]) == (403, f'pods "p" is forbidden: {message}')


def test_a_quota_on_node_ports_counts_services_that_become_one(api: Client, namespace: str):
    make_quota(api, namespace, {"services.nodeports": "1"})
    services = f"/api/v1/namespaces/{namespace}/services"
    ports = [{"name": "a", "port": 80}, {"name": "b", "port": 81}]

    made = api.create(services, {"metadata": {"name": "s"}, "spec": {"ports": ports}})
    changed = api.merge(f"{services}/s", {"spec": {"type": "NodePort"}})

    assert made.status == 201
    assert changed.status == 403
    assert "requested: services.nodeports=2, used: services.nodeports=0" in changed.body["message"]


def make_quota(api: Client, namespace: str, hard: dict) -> None:
    quotas = f"/api/v1/namespaces/{namespace}/resourcequotas"
    assert api.create(quotas, {"metadata": {"name": "q"}, "spec": {"hard": hard}}).status == 201
    status = {"hard": hard, "used": dict.fromkeys(hard, "0")}
    api.merge(f"{quotas}/q/status", {"status": status})  # where no controller does it


def test_the_scale_of_a_deployment_is_read_and_written(api: Client, namespace: str):
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    labels = {"app": "d"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "b"}]}}
    assert (
        api.create(
            path, {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": labels}, "template": template}}
        ).status
        == 201
    )

    scale = api.get(f"{path}/d/scale").body
    assert (scale["kind"], scale["spec"]["replicas"], scale["status"]["selector"]) == ("Scale", 1, "app=d")
    scale["spec"]["replicas"] = 4
    assert api("PUT", f"{path}/d/scale", scale).body["spec"]["replicas"] == 4

    assert api.get(f"{path}/d").body["spec"]["replicas"] == 4
    assert api.get(f"{path}/d").body["metadata"]["generation"] == 2


def test_events_are_seen_under_both_groups(api: Client, namespace: str):
    event = {
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": namespace},
        "reason": "Testing",
        "message": "hello",
        "type": "Normal",
    }
    api.create(f"/api/v1/namespaces/{namespace}/events", event)

    other = api.get(f"/apis/events.k8s.io/v1/namespaces/{namespace}/events/e").body

    assert (other["regarding"]["name"], other["note"]) == ("p", "hello")
