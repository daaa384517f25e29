"""Lists: selectors, pages at one revision, revisions asked for, tables and metadata only."""

from __future__ import annotations

import pytest

from tests.contract.bodies import a_config, a_pod
from tests.running_server import Client


def names(answer) -> list[str]:
    return [item["metadata"]["name"] for item in answer.body["items"]]


def test_a_list_names_its_kind_and_revision(api: Client, configs: str):
    api.create(configs, a_config("c"))

    answer = api.get(configs)

    assert (answer.body["kind"], answer.body["apiVersion"]) == ("ConfigMapList", "v1")
    assert int(answer.body["metadata"]["resourceVersion"]) > 0
    assert "c" in names(answer)


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("app=a", ["a"]),
        ("app!=a", ["b", "c"]),
        ("app in (a, b)", ["a", "b"]),
        ("app notin (a),tier", ["c"]),
        ("!tier", ["a", "b"]),
        ("tier", ["c"]),
    ],
)
def test_labels_select(api: Client, pods: str, selector: str, expected: list[str]):
    for name, labels in (("a", {"app": "a"}), ("b", {"app": "b"}), ("c", {"app": "c", "tier": "x"})):
        pod = a_pod(name)
        pod["metadata"]["labels"] = labels
        api.create(pods, pod)

    assert names(api.get(pods, labelSelector=selector)) == expected


def test_fields_select(api: Client, pods: str):
    api.create(pods, a_pod("a", nodeName="n1"))
    api.create(pods, a_pod("b"))
    api.merge(f"{pods}/b/status", {"status": {"phase": "Failed"}})

    assert names(api.get(pods, fieldSelector="spec.nodeName=n1")) == ["a"]
    assert names(api.get(pods, fieldSelector="spec.nodeName!=n1")) == ["b"]
    assert names(api.get(pods, fieldSelector="status.phase=Failed,metadata.name=b")) == ["b"]
    assert names(api.get(pods, fieldSelector="metadata.name=a")) == ["a"]


def test_fields_that_cannot_be_selected_are_refused(api: Client, pods: str):
    answer = api.get(pods, fieldSelector="spec.priority=1")

    assert answer.status == 400
    assert "field label not supported: spec.priority" in answer.body["message"]


@pytest.mark.parametrize(
    "query",
    [{"labelSelector": "a in b"}, {"labelSelector": "=="}, {"fieldSelector": "metadata.name"}, {"limit": "many"}],
)
def test_selectors_that_are_none_are_refused(api: Client, pods: str, query: dict):
    assert api.get(pods, **query).status == 400


def test_pages_all_show_the_same_revision(api: Client, configs: str):
    for number in range(7):
        api.create(configs, a_config(f"c{number}"))
    everything = names(api.get(configs))
    first = api.get(configs, limit=3)
    api.create(configs, a_config("c3-made-later"))
    api.delete(f"{configs}/c6")

    seen, token = names(first), first.body["metadata"]["continue"]
    assert first.body["metadata"]["remainingItemCount"] == len(everything) - 3
    while token:
        page = api.get(configs, **{"limit": 3, "continue": token})
        assert page.body["metadata"]["resourceVersion"] == first.body["metadata"]["resourceVersion"]
        seen += names(page)
        token = page.body["metadata"].get("continue")

    assert seen == everything


def test_a_token_that_is_none_is_refused(api: Client, configs: str):
    assert api.get(configs, **{"continue": "nonsense!"}).status == 400


def test_a_list_at_an_exact_revision_shows_the_past(api: Client, configs: str):
    made = api.create(configs, a_config("c")).body
    then = made["metadata"]["resourceVersion"]
    api.delete(f"{configs}/c")

    past = api.get(configs, resourceVersion=then, resourceVersionMatch="Exact")

    assert "c" in names(past)
    assert "c" not in names(api.get(configs, resourceVersion=then, resourceVersionMatch="NotOlderThan"))
    assert "c" not in names(api.get(configs, resourceVersion="0"))


def test_a_revision_that_has_not_happened_times_out(api: Client, configs: str):
    answer = api.get(configs, resourceVersion=str(2**40))

    assert answer.status == 504
    assert "Too large resource version" in answer.body["message"]


@pytest.mark.parametrize("query", [
    {"resourceVersionMatch": "Exact"}, {"resourceVersion": "0", "resourceVersionMatch": "Exact"},
    {"resourceVersion": "1", "resourceVersionMatch": "Sometimes"}, {"resourceVersion": "abc"},
])  # fmt: skip
def test_revisions_that_make_no_sense_are_refused(api: Client, configs: str, query: dict):
    assert api.get(configs, **query).status in (400, 422)


def test_a_table_has_columns_and_rows(api: Client, pods: str):
    api.create(pods, a_pod())

    answer = api("GET", pods, headers={"accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"})

    assert answer.body["kind"] == "Table"
    assert [c["name"] for c in answer.body["columnDefinitions"]][:5] == ["Name", "Ready", "Status", "Restarts", "Age"]
    row = answer.body["rows"][0]
    assert row["cells"][:3] == ["p", "0/1", "Pending"]
    assert row["object"]["kind"] == "PartialObjectMetadata"


def test_metadata_only_leaves_out_the_rest(api: Client, pods: str):
    api.create(pods, a_pod())
    accept = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"

    answer = api("GET", pods, headers={"accept": accept})

    assert answer.body["kind"] == "PartialObjectMetadataList"
    assert answer.body["items"][0].keys() == {"kind", "apiVersion", "metadata"}


def test_a_form_nobody_can_serve_is_not_acceptable(api: Client, pods: str):
    assert api("GET", pods, headers={"accept": "text/plain"}).status == 406


def test_a_list_over_all_namespaces_has_them_all(api: Client, pods: str, namespace: str):
    api.create(pods, a_pod("far"))

    everywhere = api.get("/api/v1/pods", fieldSelector=f"metadata.namespace={namespace}")

    assert names(everywhere) == ["far"]
