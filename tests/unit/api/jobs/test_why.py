"""Why: a reason as a value."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from volcano.api.jobs.why import FIT, MAX_ANNOTATION_BYTES, Why, decode_why, encode_why


def test_it_reads_as_a_sentence_with_the_largest_count_first() -> None:
    why = Why(FIT, "Insufficient cpu", message="2 of 3 tasks fit", counts={"tainted": 1, "Insufficient cpu": 4})

    assert str(why) == "2 of 3 tasks fit; 4 nodes: Insufficient cpu, 1 node: tainted"


def test_numbers_alone_are_no_news() -> None:
    before, after = Why(FIT, "cpu", counts={"cpu": 1}), Why(FIT, "cpu", counts={"cpu": 2})

    assert not after.is_news(before)
    assert after.is_news(None)
    assert after.is_news(Why(FIT, "memory"))


@given(st.text(max_size=9000), st.text(max_size=9000), st.dictionaries(st.text(max_size=300), st.integers(0, 10**6)))
def test_the_json_never_exceeds_the_limit_and_keeps_the_stage(cause: str, message: str, counts: dict[str, int]) -> None:
    text = encode_why(Why(FIT, cause, "predicates", message, counts))

    assert len(text.encode()) <= MAX_ANNOTATION_BYTES
    found = decode_why(text)
    assert found is not None
    assert found.stage == FIT


def test_what_is_unreadable_is_no_reason() -> None:
    assert decode_why("{") is None
    assert decode_why("[]") is None
