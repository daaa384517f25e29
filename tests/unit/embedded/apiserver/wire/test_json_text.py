"""JSON of clients: bounded in depth and in how many values it has, whatever its texts contain."""

from __future__ import annotations

import time

import msgspec
import pytest

from volcano.api.errors import BadRequest
from volcano.embedded.apiserver.wire.json_text import MAX_BODY_NODES, MAX_NESTING, decode_json


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({f"k{n}": "" for n in range(MAX_BODY_NODES // 2)}, "values and keys"),
        ([0] * MAX_BODY_NODES, "values and keys"),
        ([[]] * (MAX_BODY_NODES // 2), "values and keys"),
        ([{"name": "a"}] * MAX_BODY_NODES, "values and keys"),
    ],
    ids=["keys", "numbers", "lists", "objects"],
)
def test_many_values_are_refused(value: object, reason: str):
    with pytest.raises(BadRequest, match=reason):
        decode_json(msgspec.json.encode(value))


@pytest.mark.parametrize("text", [",:[{" * MAX_BODY_NODES, '\\"' * MAX_BODY_NODES, "[" * (MAX_NESTING + 1)])
def test_what_texts_contain_does_not_count(text: str):
    value = {"data": {"key": text}, "list": [1, 2]}

    assert decode_json(msgspec.json.encode(value)) == value


def test_a_large_object_of_a_usual_form_is_read():
    value = {"data": {f"k{n}": "v" for n in range(45_000)}}

    assert decode_json(msgspec.json.encode(value)) == value


@pytest.mark.parametrize("piece", [b'\\"', b'"', b"\\", b'a"\\', b'\\\\"', b'"\\""'], ids=repr)
def test_texts_that_do_not_end_take_linear_time(piece: bytes):
    body = b"," * (MAX_NESTING + 1) + b'"' + piece * (400_000 // len(piece)) + b"\\"
    started = time.process_time()

    with pytest.raises(BadRequest):
        decode_json(body)

    assert time.process_time() - started < 2
