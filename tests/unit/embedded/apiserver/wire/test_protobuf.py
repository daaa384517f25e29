"""Kubernetes' protobuf bodies. The bytes are written here by hand, as Go's encoder writes them."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volcano.api.errors import BadRequest
from volcano.embedded.apiserver.wire.protobuf import MAGIC, decode_protobuf


def number(value: int) -> bytes:
    value &= 2**64 - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def field(tag: int, content: bytes | str | int) -> bytes:
    if isinstance(content, int):
        return number(tag << 3) + number(content)
    raw = content.encode() if isinstance(content, str) else content
    return number(tag << 3 | 2) + number(len(raw)) + raw


def envelope(api_version: str, kind: str, raw: bytes) -> bytes:
    return MAGIC + field(1, field(1, api_version) + field(2, kind)) + field(2, raw)


def test_a_pod_with_inlined_parts_quantities_and_maps():
    requests = field(1, "cpu") + field(2, field(1, "500m"))
    command = field(3, "sleep") + field(3, "5")
    container = field(1, "main") + field(2, "busybox") + command + field(8, field(2, requests))
    volume = field(1, "v") + field(2, field(2, b""))
    metadata = field(1, "p") + field(3, "") + field(11, field(1, "app") + field(2, "x")) + field(8, b"")
    spec = field(2, container) + field(1, volume) + field(11, 0) + field(4, 30)

    pod = decode_protobuf(envelope("v1", "Pod", field(1, metadata) + field(2, spec)))

    assert (pod["apiVersion"], pod["kind"]) == ("v1", "Pod")
    assert pod["metadata"] == {"name": "p", "labels": {"app": "x"}}  # empty strings and times are nothing
    assert pod["spec"]["containers"] == [
        {"name": "main", "image": "busybox", "command": ["sleep", "5"], "resources": {"requests": {"cpu": "500m"}}}
    ]
    assert pod["spec"]["volumes"] == [{"name": "v", "emptyDir": {}}]
    assert pod["spec"]["terminationGracePeriodSeconds"] == 30
    assert "hostNetwork" not in pod["spec"]


def test_a_zero_behind_a_pointer_means_something():
    deployment = decode_protobuf(envelope("apps/v1", "Deployment", field(2, field(1, 0) + field(5, 0))))

    assert deployment["spec"] == {"replicas": 0}


def test_times_bytes_and_numbers_or_texts():
    secret = decode_protobuf(envelope("v1", "Secret", field(2, field(1, "k") + field(2, b"\x00\xff"))))
    service = decode_protobuf(
        envelope("v1", "Service", field(2, field(1, field(3, 80) + field(4, field(1, 1) + field(3, "http")))))
    )
    event = decode_protobuf(envelope("v1", "Event", field(6, field(1, 1_700_000_000))))

    assert secret["data"] == {"k": base64.b64encode(b"\x00\xff").decode()}
    assert service["spec"]["ports"] == [{"port": 80, "targetPort": "http"}]
    assert event["firstTimestamp"] == "2023-11-14T22:13:20Z"


def test_negative_numbers():
    priority = decode_protobuf(envelope("scheduling.k8s.io/v1", "PriorityClass", field(2, -5)))

    assert priority["value"] == -5


@pytest.mark.parametrize(
    "body", [b"", b"{}", MAGIC, MAGIC + b"\xff", envelope("v1", "Nonsense", b""), envelope("v1", "Pod", b"\x0a\x7f")]
)
def test_what_is_none_is_refused(body: bytes):
    with pytest.raises(BadRequest):
        decode_protobuf(body)


@given(st.binary(max_size=200))
def test_anything_is_an_object_or_refused(raw: bytes):
    try:
        assert decode_protobuf(envelope("v1", "Pod", raw))["kind"] == "Pod"
    except BadRequest:
        pass


@pytest.mark.parametrize(
    "content",
    [b"\x12\x00" * 60_000, field(2, b"\x12\x00" * 60_000), field(1, field(11, b"") * 60_000)],
    ids=["fields", "containers", "labels"],
)
def test_a_body_of_very_many_fields_is_refused(content: bytes):
    """Two bytes for an empty container would become an object of a hundred thousand containers with defaults."""
    with pytest.raises(BadRequest, match="more than 100000 fields"):
        decode_protobuf(envelope("v1", "Pod", content * 2))
