"""Entries that are kept for later objects are those that would be computed for each."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from volcano.api.meta import JSON
from volcano.embedded.apiserver.schemas.apply.creation_entries import track_new
from volcano.embedded.apiserver.schemas.apply.merge import Schema, track_update
from volcano.embedded.apiserver.schemas.crd.structural import compile_schema

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LISTS = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"names": {
    "type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}}}}}  # fmt: skip
EVENT, CUSTOM = "io.k8s.api.core.v1.Event", compile_schema(LISTS)


def owned(*uids: str, **more: JSON) -> JSON:
    owners = [{"apiVersion": "v1", "kind": "Pod", "name": uid, "uid": uid} for uid in uids]
    return {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "a", "ownerReferences": owners}, **more}


@pytest.mark.parametrize("schema", [EVENT, CUSTOM, None])
@pytest.mark.parametrize(
    "obj",
    [
        owned(),
        owned("one"),
        owned("two"),
        owned("one", "two"),
        owned("two", "one"),
        owned("one", "one"),
        owned('"quoted"'),
        owned(involvedObject={"name": "a", "uid": None}),
        owned(involvedObject={"name": None, "uid": "b"}),
        owned(spec={"names": ["a"]}),
        owned(spec={"names": ["b", "a"]}),
        owned(spec={"names": []}),
        {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "a", "managedFields": [{"manager": "other"}]}},
    ],
)
def test_a_new_object_gets_the_entries_that_are_computed_for_it_alone(schema: Schema, obj: JSON) -> None:
    for later in range(2):  # computed, then kept
        now = NOW + timedelta(hours=later)
        assert track_new(obj, manager="me", schema=schema, now=now) == track_update(
            None, obj, manager="me", schema=schema, now=now
        )


def test_what_is_done_to_the_entries_of_one_object_does_not_reach_the_next() -> None:
    first = track_new(owned("one"), manager="me", schema=EVENT, now=NOW)
    first["metadata"]["managedFields"][0]["fieldsV1"].clear()
    assert track_new(owned("one"), manager="me", schema=EVENT, now=NOW)["metadata"]["managedFields"][0]["fieldsV1"]
