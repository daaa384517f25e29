"""What queues deserve: all queues of a round at once, exactly as one queue after the other."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from volcano.scheduler.core.pour import pour
from volcano.scheduler.core.queue_shares import QueueShare
from volcano.scheduler.model import Queue, Resources

NAMES = ("cpu", "memory", "pods", "nvidia.com/gpu")


def amounts(most: int) -> st.SearchStrategy[Resources]:
    """Some name a resource without having any of it, which is not the same as not naming it."""
    whole = st.integers(0, most).map(float)
    return st.dictionaries(st.sampled_from(NAMES), whole, max_size=len(NAMES)).map(Resources)


WEIGHTS, GUARANTEES, BOUNDS, HELD = st.integers(0, 7), st.none() | amounts(5), amounts(60), amounts(40)


@st.composite
def queues(draw: Any) -> QueueShare:
    share = QueueShare(Queue("q", weight=draw(WEIGHTS)), draw(GUARANTEES) or Resources())
    share.real_capability, share.request, share.allocated = draw(BOUNDS), draw(HELD), draw(HELD)
    return share


def one_after_the_other(total: Resources, shares: list[QueueShare]) -> None:
    remaining, thirsty = total.copy(), list(shares)
    while weight := sum(share.queue.weight for share in thirsty):
        before_round, gained, given_back, still = remaining, Resources(), Resources(), []
        for share in thirsty:
            before = share.deserved
            offered = before + remaining * (share.queue.weight / weight)
            capped = offered.limited(share.real_capability, missing_is_infinite=True)
            share.deserved = capped.limited(share.request, missing_is_infinite=False).at_least(share.guarantee)
            share.refresh_share()
            if not share.request.fits(share.deserved) and share.deserved != before:
                still.append(share)
            gained.add(share.deserved.exceeding(before))
            given_back.add(before.exceeding(share.deserved))
        thirsty = still
        remaining = (remaining + given_back).exceeding(gained)
        if remaining.is_empty or remaining == before_round:
            return


def copied(share: QueueShare) -> QueueShare:
    copy = QueueShare(share.queue, share.guarantee.copy())
    copy.real_capability, copy.request = share.real_capability.copy(), share.request.copy()
    copy.allocated = share.allocated.copy()
    return copy


@settings(max_examples=300, deadline=None)
@given(amounts(100), st.lists(queues(), max_size=7))
def test_queues_deserve_to_the_last_bit_what_pouring_one_after_the_other_gives(
    total: Resources, shares: list[QueueShare]
) -> None:
    expected = [copied(share) for share in shares]
    one_after_the_other(total, expected)

    pour(total, shares)

    assert [share.deserved for share in shares] == [share.deserved for share in expected]
    assert [share.share for share in shares] == [share.share for share in expected]
