"""Label and field selectors read what kubectl writes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volcano.api.selectors import (
    EVERYTHING,
    NOTHING,
    SelectorError,
    parse_field_selector,
    parse_label_selector,
    selector_from,
)

LABELS = {"app": "web", "tier": "front", "version": "4"}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True), ("app=web", True), ("app==web", True), ("app!=web", False), ("missing!=x", True), ("app", True),
        ("!app", False), ("!missing", True), ("app in (web, db)", True), ("app notin (web)", False),
        ("missing notin (a)", True), ("version>3", True), ("version<4", False), ("app=web,tier=front", True),
        ("app=web,tier=back", False), (" app = web , version > 3 ", True), ("app=", False), ("missing>1", False),
    ],
)  # fmt: skip
def test_the_query_form_matches_as_kubernetes_does(text, matches):
    assert parse_label_selector(text).matches(LABELS) is matches


@pytest.mark.parametrize("text", ["app=web=x", "in (a)b", "app in web", "a,", ",", "app>x", "a b", "app in (", "@"])
def test_a_broken_query_is_refused(text):
    with pytest.raises(SelectorError):
        parse_label_selector(text)


def test_a_query_survives_being_printed():
    text = "a=b,c!=d,e in (f,g),!h,i,j>3"

    assert parse_label_selector(str(parse_label_selector(text))) == parse_label_selector(text)


def test_no_selector_object_matches_nothing_and_an_empty_one_everything():
    assert selector_from(None) == NOTHING
    assert selector_from({}) == EVERYTHING
    assert not NOTHING.matches({})
    assert EVERYTHING.matches({})


def test_match_labels_and_expressions_must_all_hold():
    selector = selector_from(
        {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "tier", "operator": "Exists"}]}
    )

    assert selector.matches(LABELS)
    assert not selector.matches({"app": "web"})


def test_field_selectors_know_equality_and_escapes():
    assert [(r.path, r.value, r.equal) for r in parse_field_selector("a.b=c,d!=e,f==g\\,h")] == [
        ("a.b", "c", True), ("d", "e", False), ("f", "g,h", True),
    ]  # fmt: skip
    with pytest.raises(SelectorError):
        parse_field_selector("a>b")


@given(st.text(max_size=60))
def test_any_text_is_either_a_selector_or_refused(text):
    for parse in (parse_label_selector, parse_field_selector):
        try:
            parse(text)
        except SelectorError:
            pass
