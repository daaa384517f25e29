"""What a rule does is found beside its texts, whatever their form; also where a text has no end."""

from __future__ import annotations

import time

import pytest

from volcano.api.cel.cost import shape_of
from volcano.api.cel.growth import text_growth
from volcano.api.cel.texts import without_texts

LOOP = "self.items.all(x, x)"


@pytest.mark.parametrize(
    "text",
    ["'a'", '"a"', r"'\''", r'"\""', r"r'\'", r'r"\"', r"R'\'", r"b'\''", r"br'\'", "'''a'b'''", '"""a"b"""', r"'''\''''", "''"],
)  # fmt: skip
def test_code_between_texts_is_kept(text: str):
    assert without_texts(f"{text} == {LOOP} || {text}") == f"'' == {LOOP} || ''"
    assert shape_of(f"{text} == {LOOP} || {text}").loops == 1


@pytest.mark.parametrize("hidden", [f"'{LOOP}'", f'"""{LOOP}"""', f"r'{LOOP}'", f"true // {LOOP}"])
def test_code_in_texts_and_comments_does_not_count(hidden: str):
    assert shape_of(hidden).loops == 0


def test_a_quote_in_a_comment_begins_no_text():
    assert shape_of(f"true // don't\n && {LOOP}").loops == 1


@pytest.mark.parametrize("piece", [r"\'", r"\"", "'", "r'", "'''", r"'''\\", "// '", "b"])
def test_texts_without_an_end_take_linear_time(piece: str):
    source = f"'{piece * (16_000 // len(piece))}"
    started = time.process_time()

    shape_of(source)
    text_growth(f".replace({source}")

    assert time.process_time() - started < 0.5
