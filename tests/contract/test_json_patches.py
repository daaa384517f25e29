"""JSON patches: members that are missing."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.bodies import a_config
from tests.running_server import Answer, Client


def patch(api: Client, path: str, *operations: dict[str, Any]) -> Answer:
    return api("PATCH", path, list(operations), content_type="application/json-patch+json")


def test_replacing_a_member_that_is_missing_adds_it(api: Client, configs: str):
    api.create(configs, a_config("a"))

    answer = patch(api, f"{configs}/a", {"op": "replace", "path": "/data", "value": {"k": "v"}})
    again = patch(api, f"{configs}/a", {"op": "replace", "path": "/data/new", "value": "x"})

    assert (answer.status, again.status) == (200, 200)
    assert again.body["data"] == {"k": "v", "new": "x"}


def test_a_member_that_is_missing_passes_for_null(api: Client, configs: str):
    api.create(configs, a_config("a"))

    assert patch(api, f"{configs}/a", {"op": "test", "path": "/metadata/labels", "value": None}).status == 200


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "replace", "path": "/metadata/labels/b", "value": "2"},
        {"op": "remove", "path": "/data/missing"},
        {"op": "test", "path": "/data/missing", "value": "1"},
        {"op": "add", "path": "/metadata/annotations/a", "value": "1"},
        {"op": "replace", "path": "/metadata/finalizers/0", "value": "a/b"},
    ],
)
def test_what_has_no_place_is_refused(api: Client, configs: str, operation: dict[str, Any]):
    api.create(configs, {**a_config("a"), "data": {"k": "v"}})

    assert patch(api, f"{configs}/a", operation).status == 422
