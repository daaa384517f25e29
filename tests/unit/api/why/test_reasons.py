"""Texts of reasons: bounded, and complete where facts are missing."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volcano.api.why.reasons import MAX_TEXT_CHARACTERS, REASONS, Finding, finding, named, rendered


@given(st.sampled_from(sorted(REASONS)), st.text(max_size=300))
def test_a_text_is_never_longer_than_two_lines_whatever_the_facts_are(name: str, fact: str) -> None:
    fields = {field for _, field, _, _ in string.Formatter().parse(REASONS[name].text) if field}

    assert len(rendered(name, dict.fromkeys(fields, fact))) <= MAX_TEXT_CHARACTERS


def test_facts_that_a_case_does_not_have_are_left_out() -> None:
    assert str(finding("NoNodeHasResource", resource="example.org/x")) == "no node has example.org/x"


def test_a_reason_outside_the_list_is_refused() -> None:
    with pytest.raises(AssertionError):
        finding("SomethingElse")


def test_names_are_cut_after_three() -> None:
    assert named(["a", "b", "c", "d", "a"]) == "a, b, c and 1 more"


def test_a_finding_has_the_tier_of_its_reason() -> None:
    assert Finding("QueueClosed", {"queue": "q", "state": "Closed"}).tier == "needs a change by an administrator"
