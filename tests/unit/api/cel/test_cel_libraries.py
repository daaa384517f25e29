"""What Kubernetes adds to CEL, as plain functions. tests/contract/test_expressions.py compares it with a real server."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from volcano.api.cel import evaluator as cel
from volcano.api.cel.named_formats import FORMATS
from volcano.api.cel.networks import parse_cidr, parse_ip
from volcano.api.cel.urls import parse_url
from volcano.api.cel.values import kind_of, made, text_of
from volcano.api.cel.versions import parse_version

ADDRESSES = st.ip_addresses().filter(lambda ip: isinstance(ip, IPv4Address) or ip.ipv4_mapped is None)
NUMBERS = st.integers(0, 2**64 - 1)
WORDS = st.from_regex(r"[1-9]?[0-9]?[A-Za-z-]{1,5}", fullmatch=True) | st.integers(0, 999).map(str)
VERSIONS = st.builds(
    lambda numbers, before: ".".join(map(str, numbers)) + ("-" + ".".join(before) if before else ""),
    st.tuples(NUMBERS, NUMBERS, NUMBERS),
    st.lists(WORDS, max_size=3),
)


@given(ADDRESSES)
def test_an_address_is_what_it_was_however_it_is_written(address):
    assert parse_ip(str(address)) == parse_ip(address.exploded) == address


@given(ADDRESSES, st.integers(0, 32))
def test_a_network_keeps_the_address_it_was_written_with(address, length):
    found = parse_cidr(f"{address}/{length}")

    assert (found.ip, found.network.prefixlen) == (address, length)


@given(st.text(max_size=40) | st.builds(str, st.ip_addresses()).map(lambda text: f"{text}%x"))
def test_what_is_no_address_is_an_error_of_the_value(text):
    try:
        assert isinstance(parse_ip(text), IPv4Address | IPv6Address)
    except ValueError as error:
        assert "IP" in str(error)


@given(VERSIONS, VERSIONS, VERSIONS)
def test_versions_have_one_order(one, two, three):
    first, second, third = sorted(map(parse_version, (one, two, three)), key=lambda version: version.order)

    assert first.order <= second.order <= third.order
    assert parse_version(first.text) == first


@given(VERSIONS.filter(lambda text: "-" not in text), st.lists(WORDS, min_size=1, max_size=3))
def test_what_comes_before_a_release_is_less_and_builds_do_not_count(release, before):
    early = parse_version(f"{release}-{'.'.join(before)}")

    assert early.order < parse_version(release).order
    assert parse_version(f"{release}+{'.'.join(before)}") == parse_version(release)


@example("//")
@example("//@")
@example("//?a=b")
@given(st.text(max_size=60) | st.text("abc:/?#[]@%25 ä.~", max_size=30))
def test_the_canonical_text_of_a_url_has_the_same_parts(text):
    try:
        found = parse_url(text)
    except ValueError:
        return

    again = parse_url(found.text)

    assert again.text == found.text
    assert (again.scheme, again.host, again.escaped_path) == (found.scheme, found.host, found.escaped_path)
    assert (again.hostname, again.port, again.values) == (found.hostname, found.port, found.values)


def test_a_value_of_another_type_is_no_argument():
    assert text_of(made("net.IP", "::1"), "net.CIDR", "net.IP") == "::1"
    assert kind_of(made("net.IP", "::1"), "net.CIDR", "net.IP") == "net.IP"
    for other in ({}, {"net.IP": 1}, {"net.IP": "::1", "more": ""}, {"spec": "x"}):
        with pytest.raises(ValueError, match="no such overload"):
            text_of(other, "net.IP")


@pytest.mark.parametrize(("name", "fits", "does_not"), [
    ("dns1123Label", "my-name", "My.Name"),
    ("dns1123LabelPrefix", "my-name-", "My"),
    ("uri", "https://example.com/", "example"),
    ("uuid", "123e4567-e89b-12d3-a456-426614174000", "123"),
    ("byte", "aGVsbG8=", "?"),
    ("datetime", "2021-01-01T00:00:00Z", "2021-01-01"),
])  # fmt: skip
def test_a_format_says_what_is_wrong(name, fits, does_not):
    assert FORMATS[name](fits) == []
    assert FORMATS[name](does_not)


def test_conditions_of_webhooks_have_the_same_functions():
    compiled = cel.environment("object", "oldObject", "request").compile("cidr(object.net).containsIP(object.ip)")

    result = compiled.eval(data={"object": {"net": "10.0.0.0/8", "ip": "10.1.2.3"}})

    assert not cel.is_error(result) and result.plain_value() is True
