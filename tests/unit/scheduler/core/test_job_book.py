"""Jobs that say that they changed: what a session sees and counts is as if all jobs were looked at anew."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from volcano.api.scheduling import PodGroup
from volcano.scheduler.core.job_book import JobBook
from volcano.scheduler.core.ledger import Ledger
from volcano.scheduler.core.snapshot import Snapshot
from volcano.scheduler.loop import cycle
from volcano.scheduler.model import Job, SeededChance
from volcano.testing.clusters import GangShape, Share, cluster, configuration

IDS = ("ns/a", "ns/b", "ns/c", "ns/d")
steps = st.tuples(
    st.sampled_from(["put", "put", "shell", "drop", "touch", "queues", "look"]),
    st.sampled_from(IDS),
    st.sampled_from(["q0", "q1", "gone"]),
)


def a_job(id: str, queue: str, *, is_shell: bool = False) -> Job:
    namespace, _, name = id.partition("/")
    group = None if is_shell else PodGroup()
    return Job(id=id, name=name, namespace=namespace, queue=queue, group=group)


@given(st.lists(steps, max_size=30))
def test_schedulable_jobs_and_their_sums_are_those_of_a_look_at_all_jobs(done: list[tuple[str, str, str]]) -> None:
    book, kept, queues = JobBook(), Ledger(), {"q0", "q1"}
    for step, id, queue in [*done, ("look", "", "")]:
        if step in ("put", "shell"):
            book[id] = a_job(id, queue, is_shell=step == "shell")
        elif step == "drop":
            book.remove(id)
        elif step == "touch" and id in book:
            book[id].touch()
        elif step == "queues":
            queues ^= {queue}
        elif step == "look":
            seen = book.schedulable(queues)
            expected = {id: book[id] for id in sorted(book) if book[id].group is not None and book[id].queue in queues}
            assert list(seen.items()) == list(expected.items())
            kept.update(seen, book.take_changed())
            anew = Ledger()
            anew.update(expected, expected)
            assert {name: sums for name, sums in kept.queues.items() if sums.jobs} == anew.queues


def decided(snapshot: Snapshot) -> Any:
    plugins = "priority, gang; drf, predicates, proportion, nodeorder"
    return cycle(snapshot, configuration("enqueue, allocate, backfill", plugins), SeededChance(0))


def test_a_job_that_left_is_in_no_later_decisions_and_the_settled_ones_are() -> None:
    jobs = {name: GangShape(1, "cpu=1", queue="q", on=["n0"]) for name in ("a", "b")}
    snapshot = cluster(nodes={"n0": "cpu=4, memory=8Gi"}, jobs=jobs, queues={"q": Share()}).snapshot()
    first = decided(snapshot)
    left, stays = sorted(first.groups)

    snapshot.jobs.remove(left)
    second = decided(snapshot)

    assert list(second.groups) == [stays]
    assert second.groups[stays] == first.groups[stays]
    assert second.status_counts == {stays: first.status_counts[stays]}
