"""managedFields computed on the stored entries are those of the general way, after any series of updates."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from volcano.embedded.apiserver.schemas.apply import merge
from volcano.embedded.apiserver.schemas.apply.merge import track_update

POD = "io.k8s.api.core.v1.Pod"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
texts = some.sampled_from(["a", "b", "c"])
maps = some.dictionaries(texts, texts, max_size=3)


def named(key: str, **fields: some.SearchStrategy[Any]) -> some.SearchStrategy[list[dict[str, Any]]]:
    """A list whose elements have different keys."""
    element = some.fixed_dictionaries({key: texts}, optional=fields)
    return some.lists(element, max_size=3, unique_by=lambda each: each[key])


pods = some.fixed_dictionaries(
    {
        "metadata": some.fixed_dictionaries(
            {"name": some.just("p")},
            optional={
                "labels": maps,
                "annotations": maps,
                "finalizers": some.lists(texts, max_size=3, unique=True),
                "ownerReferences": named("uid", name=texts, kind=texts),
            },
        ),
        "spec": some.fixed_dictionaries(
            {"containers": named("name", image=texts, env=named("name", value=texts), command=some.lists(texts))},
            optional={"nodeName": texts, "nodeSelector": maps, "tolerations": some.lists(maps, max_size=2)},
        ),
    },
    optional={
        "status": some.fixed_dictionaries(
            {}, optional={"phase": texts, "conditions": named("type", status=texts), "podIPs": named("ip")}
        )
    },
)
writers = some.tuples(some.sampled_from(["kubectl", "agent", "scheduler"]), some.sampled_from(["", "status"]))


def after(pod: dict[str, Any], updates: list[tuple[dict[str, Any], tuple[str, str], int]]) -> list[dict[str, Any]]:
    """The object after its creation and after each update."""
    bare = {"apiVersion": "v1", "kind": "Pod"}
    stored = track_update(None, {**bare, **pod}, manager="kubectl", schema=POD, now=NOW)
    states = [stored]
    now = NOW
    for body, (manager, subresource), seconds in updates:
        now += timedelta(seconds=seconds)
        new = {**bare, **body}
        stored = track_update(stored, new, manager=manager, schema=POD, now=now, subresource=subresource)
        states.append(stored)
    return states


@given(pods, some.lists(some.tuples(pods, writers, some.integers(0, 2)), max_size=5))
@settings(max_examples=150)
def test_entries_are_those_of_the_general_way(
    pod: dict[str, Any], updates: list[tuple[dict[str, Any], tuple[str, str], int]]
) -> None:
    quick = after(pod, updates)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merge, "entries_after", lambda *_entries, **_change: None)
        general = after(pod, updates)

    assert quick == general


def test_more_updaters_than_are_kept_become_ancient_changes() -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"containers": []}}
    updates = [({**pod, "metadata": {"name": "p", "labels": {"a": str(n)}}}, (f"m{n}", ""), 1) for n in range(3)]
    for number in range(14):
        labels = {f"k{each}": "x" for each in range(number + 1)}
        updates.append(({**pod, "metadata": {"name": "p", "labels": labels}}, (f"w{number}", ""), 1))

    managers = [entry["manager"] for entry in after(pod, updates)[-1]["metadata"]["managedFields"]]

    assert "ancient-changes" in managers and len(managers) <= 10
