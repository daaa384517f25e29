"""Bad input: each a clean Status object with the right code."""

from __future__ import annotations

import socket
import ssl

import pytest

from tests.contract.bodies import a_config
from tests.running_server import Client


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"{", 400),
        (b"", 400),
        (b"null", 422),
        (b"[]", 400),
        (b'"text"', 400),
        (b"\xff\xfe", 400),
        (b'{"kind": 5, "apiVersion": "v1"}', 400),
        (b'{"metadata": []}', 400),
        (b'{"metadata": {"name": 5}}', 400),
        (b'{"metadata": {"name": "c"}, "data": {"a": 5}}', 400),
        (b'{"metadata": {"name": "c"}, "data": "text"}', 400),
    ],
)
def test_malformed_bodies_are_refused(api: Client, configs: str, raw: bytes, status: int):
    answer = api.create(configs, raw)

    assert answer.status == status, answer
    assert (answer.body["kind"], answer.body["status"]) == ("Status", "Failure")


def test_a_body_over_three_mebibytes_is_too_large(api: Client, configs: str):
    answer = api.create(configs, a_config("c", a="x" * (3 * 2**20 + 100)))

    assert answer.status == 413


def test_deep_nesting_is_refused(api: Client, configs: str):
    raw = b'{"metadata": {"name": "c"}, "extra": ' + b'{"a":' * 20_000 + b"1" + b"}" * 20_000 + b"}"

    assert api.create(configs, raw).status in (400, 422)


@pytest.mark.parametrize("name", ["UPPER", "-dash", "dot.", "a" * 254, "sp ace", "sla/sh", "ünicode"])
def test_names_that_are_none_are_refused(api: Client, configs: str, name: str):
    answer = api.create(configs, a_config(name))

    assert answer.status == 422
    assert answer.body["reason"] == "Invalid"
    assert answer.body["details"]["causes"][0]["field"] == "metadata.name"


def test_bodies_in_unknown_formats_are_unsupported(api: Client, configs: str):
    for media in ("application/cbor", "text/plain", "application/xml"):
        assert api.create(configs, b"whatever", content_type=media).status == 415


def test_a_field_given_twice_is_refused_when_strict(api: Client, configs: str):
    raw = b'{"metadata": {"name": "c"}, "data": {"a": "1", "a": "2"}}'

    strict = api.create(configs, raw, query={"fieldValidation": "Strict"})
    warned = api.create(configs, raw, query={"fieldValidation": "Warn"})

    assert strict.status == 400
    assert 'duplicate field "data.a"' in strict.body["message"]
    assert "duplicate field" in warned.headers["warning"]


@pytest.mark.parametrize("query", [{"dryRun": "Some"}, {"fieldValidation": "Maybe"}, {"fieldManager": "x" * 200}])
def test_options_that_are_none_are_refused(api: Client, configs: str, query: dict):
    assert api.create(configs, a_config("c"), query=query).status in (400, 422)


def test_endless_headers_end_the_connection(api: Client):
    raw = socket.create_connection((api.server.hostname, api.server.port), timeout=10)
    with api.context.wrap_socket(raw, server_hostname=api.server.hostname) as connection:
        connection.sendall(b"GET /version HTTP/1.1\r\nhost: x\r\n")
        try:
            for number in range(4000):
                connection.sendall(b"x-header-%d: %s\r\n" % (number, b"y" * 1000))
            answer = connection.recv(100)
        except (OSError, ssl.SSLError):
            answer = b""

    assert answer == b"" or b" 431 " in answer or b" 400 " in answer


def test_what_is_no_http_is_turned_away(api: Client):
    raw = socket.create_connection((api.server.hostname, api.server.port), timeout=10)
    with api.context.wrap_socket(raw, server_hostname=api.server.hostname) as connection:
        connection.sendall(b"\x00\x01\x02 nonsense \r\n\r\n")
        answer = connection.recv(1000)

    assert answer == b"" or b"400" in answer


def test_an_object_without_a_name_is_refused_whatever_its_kind(api: Client, namespace: str):
    paths = ("/api/v1/namespaces", f"/api/v1/namespaces/{namespace}/configmaps", "/api/v1/nodes")

    answers = [api.create(path, {}) for path in paths]

    assert [answer.status for answer in answers] == [422, 422, 422]
    assert all("name or generateName is required" in answer.body["message"] for answer in answers)
