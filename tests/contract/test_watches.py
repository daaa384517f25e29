"""Watches: from a revision, from now, from the start; selectors, bookmarks, ends."""

from __future__ import annotations

from itertools import islice

import pytest

from tests.contract.bodies import a_config, a_pod
from tests.running_server import Client

INITIAL_EVENTS_END = "k8s.io/initial-events-end"


def told(events, number: int) -> list[tuple[str, str]]:
    return [(event["type"], event["object"]["metadata"]["name"]) for event in islice(events, number)]


def revision(api: Client, path: str) -> str:
    return api.get(path).body["metadata"]["resourceVersion"]


def test_a_watch_from_a_revision_tells_everything_since(api: Client, configs: str):
    since = revision(api, configs)
    api.create(configs, a_config("a"))
    api.merge(f"{configs}/a", {"data": {"k": "v"}})
    api.delete(f"{configs}/a")

    with api.watching(configs, query={"resourceVersion": since}) as events:
        seen = list(islice(events, 3))

    assert [(e["type"], e["object"]["metadata"]["name"]) for e in seen] == [
        ("ADDED", "a"),
        ("MODIFIED", "a"),
        ("DELETED", "a"),
    ]
    revisions = [int(e["object"]["metadata"]["resourceVersion"]) for e in seen]
    assert revisions == sorted(set(revisions))


def test_a_watch_without_a_revision_begins_with_what_is_there(api: Client, configs: str):
    api.create(configs, a_config("a"))

    with api.watching(configs, query={"fieldSelector": "metadata.name!=kube-root-ca.crt"}) as events:
        first = told(events, 1)
        api.create(configs, a_config("b"))
        then = told(events, 1)

    assert (first, then) == ([("ADDED", "a")], [("ADDED", "b")])


def test_a_change_that_leaves_the_selection_is_a_deletion(api: Client, pods: str):
    since = revision(api, pods)
    api.create(pods, a_pod("a"))
    api.merge(f"{pods}/a", {"metadata": {"labels": {"app": "other"}}})
    api.merge(f"{pods}/a", {"metadata": {"labels": {"app": "a"}}})

    with api.watching(pods, query={"resourceVersion": since, "labelSelector": "app=a"}) as events:
        seen = list(islice(events, 3))

    assert [e["type"] for e in seen] == ["ADDED", "DELETED", "ADDED"]
    assert seen[1]["object"]["metadata"]["labels"] == {"app": "a"}
    assert int(seen[1]["object"]["metadata"]["resourceVersion"]) > int(seen[0]["object"]["metadata"]["resourceVersion"])


def test_a_watch_of_one_object_tells_of_it_alone(api: Client, configs: str):
    since = revision(api, configs)
    api.create(configs, a_config("other"))
    api.create(configs, a_config("mine"))

    with api.watching(configs, query={"resourceVersion": since, "fieldSelector": "metadata.name=mine"}) as events:
        assert told(events, 1) == [("ADDED", "mine")]


def test_a_watch_list_ends_its_start_with_a_bookmark(api: Client, configs: str):
    api.create(configs, a_config("a"))
    query = {
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
        "allowWatchBookmarks": "true",
        "fieldSelector": "metadata.name!=kube-root-ca.crt",
    }

    with api.watching(configs, query=query) as events:
        first, mark = islice(events, 2)
        api.create(configs, a_config("b"))
        assert told(events, 1) == [("ADDED", "b")]

    assert first["type"] == "ADDED"
    assert mark["type"] == "BOOKMARK"
    assert mark["object"]["metadata"]["annotations"] == {INITIAL_EVENTS_END: "true"}
    assert int(mark["object"]["metadata"]["resourceVersion"]) > 0


def test_a_watch_list_needs_its_revision_match(api: Client, configs: str):
    assert api.get(configs, watch="true", sendInitialEvents="true").status == 422


def test_a_watch_ends_when_its_time_is_up(api: Client, configs: str):
    with api.watching(configs, query={"resourceVersion": revision(api, configs), "timeoutSeconds": 1}) as events:
        assert list(events) == []


def test_a_watch_shows_tables_to_those_who_want_them(api: Client, pods: str):
    since = revision(api, pods)
    api.create(pods, a_pod("a"))
    api.create(pods, a_pod("b"))
    accept = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}

    with api.watching(pods, query={"resourceVersion": since}, headers=accept) as events:
        one, two = islice(events, 2)

    assert one["object"]["kind"] == two["object"]["kind"] == "Table"
    assert one["object"]["columnDefinitions"]
    assert not two["object"].get("columnDefinitions")
    assert two["object"]["rows"][0]["cells"][0] == "b"


@pytest.mark.parametrize("bad", ["abc", "-1"])
def test_a_revision_that_is_none_is_refused(api: Client, configs: str, bad: str):
    answer = api.get(configs, watch="true", resourceVersion=bad)

    assert answer.status >= 400  # kube-apiserver itself says 500 here
    assert "invalid syntax" in answer.body["message"]
