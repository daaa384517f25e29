"""The log in memory: what a list at an earlier revision says is what a list said then."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from volcano.embedded.apiserver.store.contract import ADDED, DELETED, MODIFIED, LoggedChange, ObjectKey, Stored
from volcano.embedded.apiserver.store.revision_log import RevisionLog

PLACES = [ObjectKey("pods", namespace, name) for namespace in ("one", "two") for name in "abcd"]


def toggle(log: RevisionLog, key: ObjectKey, *, remove: bool) -> None:
    previous = log.find(key)
    stored = Stored(key, log.revision + 1, b"{}")
    kind = ADDED if previous is None else DELETED if remove else MODIFIED
    log.apply(LoggedChange(kind, stored, previous))


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


@given(
    st.lists(st.tuples(st.sampled_from(PLACES), st.booleans()), max_size=30),
    st.sampled_from(["", "one", "two"]),
    st.integers(min_value=1, max_value=5),
)
def test_pages_together_are_the_whole_list_of_their_revision(changes, namespace, limit):
    log = RevisionLog()
    revisions = []
    for key, remove in changes:
        revisions.append(log.revision)
        toggle(log, key, remove=remove)

    for revision in [*revisions, log.revision]:
        whole, found, after, more = seen(log.scan("pods", namespace, revision=revision)), [], None, 1
        while more:
            page, more = log.page("pods", namespace, revision=revision, after=after, limit=limit)
            found += seen(page)
            assert len(found) + more == len(whole)
            after = found[-1][:2] if found else None

        assert found == whole
