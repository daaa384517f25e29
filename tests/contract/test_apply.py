"""Server-side apply and managed fields."""

from __future__ import annotations

from typing import Any

from tests.contract.bodies import a_config
from tests.running_server import Answer, Client


def apply(api: Client, path: str, body: Any, manager: str = "one", **query: Any) -> Answer:
    query = {"fieldManager": manager, **query}
    return api("PATCH", path, body, query=query, content_type="application/apply-patch+yaml")


def test_what_is_applied_is_made_and_owned(api: Client, configs: str):
    made = apply(api, f"{configs}/c", a_config("c", a="1"))

    assert made.status == 201
    (entry,) = made.body["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"]) == ("one", "Apply")
    assert entry["fieldsV1"] == {"f:data": {"f:a": {}}} or "f:data" in entry["fieldsV1"]


def test_applying_the_same_again_changes_nothing(api: Client, configs: str):
    first = apply(api, f"{configs}/c", a_config("c", a="1")).body

    second = apply(api, f"{configs}/c", a_config("c", a="1"))

    assert second.status == 200
    assert second.body["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


def test_two_appliers_share_an_object_and_a_field_that_is_no_longer_applied_goes(api: Client, configs: str):
    apply(api, f"{configs}/c", a_config("c", a="1", b="1"))
    apply(api, f"{configs}/c", a_config("c", x="2"), "two")

    after = apply(api, f"{configs}/c", a_config("c", a="1"))

    assert after.body["data"] == {"a": "1", "x": "2"}


def test_a_field_of_another_is_a_conflict_unless_forced(api: Client, configs: str):
    apply(api, f"{configs}/c", a_config("c", a="1"))

    refused = apply(api, f"{configs}/c", a_config("c", a="2"), "two")
    forced = apply(api, f"{configs}/c", a_config("c", a="2"), "two", force="true")

    assert refused.status == 409
    assert 'conflict with "one": .data.a' in refused.body["message"]
    assert refused.body["details"]["causes"][0]["field"] == ".data.a"
    assert forced.body["data"] == {"a": "2"}


def test_an_update_takes_fields_from_an_applier(api: Client, configs: str):
    apply(api, f"{configs}/c", a_config("c", a="1"))
    api.merge(f"{configs}/c", {"data": {"a": "9"}}, query={"fieldManager": "editor"})

    answer = apply(api, f"{configs}/c", a_config("c", a="1"))

    assert answer.status == 409
    assert 'conflict with "editor"' in answer.body["message"]


def test_an_apply_needs_a_manager(api: Client, configs: str):
    answer = apply(api, f"{configs}/c", a_config("c"), "")

    assert answer.status in (400, 422)
    assert "is required for apply patch" in answer.body["message"]


def test_yaml_can_be_applied(api: Client, configs: str):
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  a: |\n    two\n    lines\n"

    assert apply(api, f"{configs}/c", text).body["data"] == {"a": "two\nlines\n"}


def test_a_create_says_who_made_the_fields(api: Client, configs: str):
    made = api.create(configs, a_config("c", a="1"), query={"fieldManager": "maker"}).body

    (entry,) = made["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"], entry["apiVersion"]) == ("maker", "Update", "v1")
    assert entry["fieldsV1"]["f:data"] == {".": {}, "f:a": {}}
