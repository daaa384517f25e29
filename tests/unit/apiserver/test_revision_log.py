"""The log in memory: what a list at an earlier revision says is what a list said then."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from volcano.apiserver.revision_log import RevisionLog
from volcano.apiserver.store import ADDED, DELETED, MODIFIED, Change, ObjectKey, Stored

PLACES = [ObjectKey("pods", namespace, name) for namespace in ("one", "two") for name in "abcd"]


def toggle(log: RevisionLog, key: ObjectKey, *, remove: bool) -> None:
    previous = log.find(key)
    stored = Stored(key, log.revision + 1, b"{}")
    kind = ADDED if previous is None else DELETED if remove else MODIFIED
    log.apply(Change(kind, stored, previous))


def seen(objects) -> list[tuple[str, str, int]]:
    return [(stored.key.namespace, stored.key.name, stored.revision) for stored in objects]


@given(st.lists(st.tuples(st.sampled_from(PLACES), st.booleans()), max_size=30), st.sampled_from(["", "one", "two"]))
def test_a_list_at_an_earlier_revision_says_what_was_then(changes, namespace):
    log, then = RevisionLog(), {}
    for key, remove in changes:
        then[log.revision] = seen(log.scan("pods", namespace))
        toggle(log, key, remove=remove)

    for revision, expected in then.items():
        assert seen(log.scan("pods", namespace, revision=revision)) == expected
