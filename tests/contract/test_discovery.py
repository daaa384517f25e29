"""Discovery, version, health: what clients ask first."""

from __future__ import annotations

from tests.running_server import Client


def test_the_core_group_lists_its_resources(api: Client):
    found = {r["name"]: r for r in api.get("/api/v1").body["resources"]}

    assert found["pods"]["namespaced"] is True
    assert found["pods"]["shortNames"] == ["po"]
    assert {"create", "delete", "get", "list", "patch", "update", "watch"} <= set(found["pods"]["verbs"])
    assert found["nodes"]["namespaced"] is False
    assert {"pods/status", "pods/binding", "pods/log", "pods/eviction"} <= found.keys()


def test_groups_name_their_preferred_version(api: Client):
    groups = {g["name"]: g for g in api.get("/apis").body["groups"]}

    assert groups["apps"]["preferredVersion"] == {"groupVersion": "apps/v1", "version": "v1"}
    assert {"batch", "rbac.authorization.k8s.io", "apiextensions.k8s.io", "authorization.k8s.io"} <= groups.keys()


def test_the_aggregated_form_has_everything_at_once(api: Client):
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"

    answer = api("GET", "/apis", headers={"accept": accept})
    core = api("GET", "/api", headers={"accept": accept})

    assert answer.body["kind"] == core.body["kind"] == "APIGroupDiscoveryList"
    assert "as=APIGroupDiscoveryList" in answer.headers["content-type"].replace(" ", "")
    groups = {item["metadata"]["name"]: item for item in answer.body["items"]}
    assert "deployments" in {r["resource"] for r in groups["apps"]["versions"][0]["resources"]}
    assert "pods" in {r["resource"] for r in core.body["items"][0]["versions"][0]["resources"]}


def test_the_version_and_health_are_told(api: Client):
    assert int(api.get("/version").body["minor"].rstrip("+")) >= 31
    for path in ("/healthz", "/livez", "/readyz"):
        assert api.get(path).raw == b"ok"
    assert b"[+]ping ok" in api.get("/readyz", verbose="true").raw


def test_metrics_count_requests(api: Client):
    api.get("/api/v1/namespaces")

    assert b"apiserver_request_total" in api.get("/metrics").raw
