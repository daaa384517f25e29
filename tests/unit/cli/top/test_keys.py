"""Bytes of a terminal become keys."""

import pytest

from volcano.cli.top import keys
from volcano.cli.top.keys import KeyReader


@pytest.mark.parametrize(
    ("typed", "pressed"),
    [
        (b"\x1b[A\x1b[B", [keys.UP, keys.DOWN]),
        (b"\x1bOA\x1bOD", [keys.UP, keys.LEFT]),
        (b"\x1b[5~\x1b[6~\x1b[H\x1b[4~", [keys.PAGE_UP, keys.PAGE_DOWN, keys.HOME, keys.END]),
        (b"\r\t\x7f", [keys.ENTER, keys.NEXT, keys.BACK]),
        (b"s1q", ["s", "1", keys.QUIT]),
        (b"\x1bq", [keys.BACK, keys.QUIT]),
        (b"\x1b[1;5A\x1b[24~x", ["x"]),
        ("ü".encode() + b"\x01s", ["s"]),
    ],
)
def test_keys_are_told_apart(typed, pressed):
    assert KeyReader().feed(typed) == pressed


def test_a_sequence_may_arrive_in_parts():
    reader = KeyReader()

    assert [reader.feed(bytes([byte])) for byte in b"\x1b[6~"] == [[], [], [], [keys.PAGE_DOWN]]
    assert not reader.is_waiting


def test_escape_alone_is_a_key_once_nothing_follows():
    reader = KeyReader()

    assert reader.feed(b"\x1b") == [] and reader.is_waiting
    assert reader.give_up() == [keys.BACK] and not reader.is_waiting


def test_a_sequence_without_end_is_dropped():
    reader = KeyReader()

    reader.feed(b"\x1b[" + b"1" * 100)

    assert "s" in [*reader.feed(b"s"), *reader.give_up(), *reader.feed(b"s")] and not reader.is_waiting
