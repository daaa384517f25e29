"""A client's habits across restarts and compaction: resume where it was, or be told to start over."""

from __future__ import annotations

import itertools
from itertools import islice
from pathlib import Path

import pytest

from tests.contract.bodies import a_config
from tests.running_server import Client, running_server
from volcano.embedded.apiserver.store.memory_store import MemoryStore
from volcano.embedded.apiserver.store.sqlite_store import SqliteStore

CONFIGS = "/api/v1/namespaces/default/configmaps"


def test_a_watch_resumes_after_a_restart_without_losing_or_doubling(tmp_path: Path):
    with running_server(SqliteStore(tmp_path / "state.db")) as running:
        api = Client(running.kubeconfig)
        api.create(CONFIGS, a_config("a"))
        with api.watching(CONFIGS) as events:
            seen = next(events)["object"]["metadata"]["resourceVersion"]
        api.create(CONFIGS, a_config("b"))
        api.delete(f"{CONFIGS}/a")

    with running_server(SqliteStore(tmp_path / "state.db")) as running:
        api = Client(running.kubeconfig)
        with api.watching(CONFIGS, query={"resourceVersion": seen}) as events:
            missed = [(e["type"], e["object"]["metadata"]["name"]) for e in islice(events, 2)]
            api.create(CONFIGS, a_config("c"))
            then = next(events)["object"]["metadata"]["name"]

    assert missed == [("ADDED", "b"), ("DELETED", "a")]
    assert then == "c"


def test_pages_go_on_after_a_restart(tmp_path: Path):
    with running_server(SqliteStore(tmp_path / "state.db")) as running:
        api = Client(running.kubeconfig)
        for number in range(5):
            api.create(CONFIGS, a_config(f"c{number}"))
        token = api.get(CONFIGS, limit=2).body["metadata"]["continue"]

    with running_server(SqliteStore(tmp_path / "state.db")) as running:
        api = Client(running.kubeconfig)
        api.delete(f"{CONFIGS}/c3")
        page = api.get(CONFIGS, **{"continue": token})

    assert [c["metadata"]["name"] for c in page.body["items"]] == ["c2", "c3", "c4"]


def test_what_was_compacted_is_gone_and_a_list_can_go_on_inconsistently():
    with running_server(MemoryStore(max_changes=0)) as running:
        api = Client(running.kubeconfig)
        for number in range(5):
            api.create(CONFIGS, a_config(f"c{number}"))
        first = api.get(CONFIGS, limit=2).body["metadata"]
        api.delete(f"{CONFIGS}/c3")

        watching = api.get(CONFIGS, watch="true", resourceVersion=first["resourceVersion"])
        paging = api.get(CONFIGS, **{"continue": first["continue"], "limit": 2})
        further = api.get(CONFIGS, **{"continue": paging.body["metadata"]["continue"]})

    assert (watching.status, watching.body["reason"]) == (410, "Expired")
    assert "too old resource version" in watching.body["message"]
    assert (paging.status, paging.body["reason"]) == (410, "Expired")
    assert [c["metadata"]["name"] for c in further.body["items"]] == ["c2", "c4"]


def test_definitions_and_their_objects_survive_a_restart(tmp_path: Path):
    queue = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "kept"},
        "spec": {"weight": 5},
    }
    queues = "/apis/scheduling.volcano.sh/v1beta1/queues"
    with running_server(SqliteStore(tmp_path / "state.db")) as running:
        assert Client(running.kubeconfig).create(queues, queue).status == 201

    with running_server(SqliteStore(tmp_path / "state.db")) as running:
        found = Client(running.kubeconfig).get(f"{queues}/kept")

    assert found.body["spec"]["weight"] == 5


def test_stopping_ends_open_watches_at_once():
    with running_server() as running:
        api = Client(running.kubeconfig)
        watching = api.watching(CONFIGS)
        events = watching.__enter__()

    with pytest.raises(StopIteration):
        next(events)
    watching.__exit__(None, None, None)


def test_a_quotas_status_follows_what_is_used():
    with running_server() as running:
        api = Client(running.kubeconfig)
        quotas = "/api/v1/namespaces/default/resourcequotas"
        api.create(quotas, {"metadata": {"name": "q"}, "spec": {"hard": {"configmaps": "5"}}})
        with api.watching(quotas) as events:
            api.create(CONFIGS, a_config("a"))
            statuses = ((event["object"].get("status") or {}) for event in itertools.islice(events, 10))

            assert any(status.get("used", {}).get("configmaps") == "1" for status in statuses)
