"""DNS messages: questions that are read, answers that fit, and bytes that are no message."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volcano.embedded.agent.network.dns_answers import DnsRecord
from volcano.embedded.agent.network.dns_wire import (
    HEADER,
    IS_TRUNCATED,
    KINDS,
    NO_ERROR,
    DnsError,
    Question,
    read_addresses,
    read_question,
    write_answer,
    write_name,
    write_question,
)

NAME = "web.shop.svc.cluster.local"


def a_question(kind: str = "A", name: str = NAME) -> Question:
    return read_question(write_question(name, kind))


def test_a_question_is_read_as_it_was_written():
    asked = read_question(write_question("WEB.shop", "SRV"))
    assert (asked.text, asked.kind_name, asked.is_standard) == ("web.shop", "SRV", True)


def test_an_answer_repeats_the_question_and_has_the_addresses():
    records = [DnsRecord(NAME, "A", f"10.64.0.{number}") for number in range(3)]

    answer = write_answer(a_question(), NO_ERROR, records, zone="cluster.local")

    assert read_addresses(answer, "A") == ["10.64.0.0", "10.64.0.1", "10.64.0.2"]
    assert answer[12:].startswith(write_name(NAME))


def test_an_answer_that_does_not_fit_is_marked_and_asks_for_tcp():
    records = [DnsRecord(NAME, "A", f"10.64.{number}.1") for number in range(100)]
    asked = a_question()

    short = write_answer(asked, NO_ERROR, records, zone="cluster.local", max_bytes=asked.max_udp_bytes)
    whole = write_answer(asked, NO_ERROR, records, zone="cluster.local")

    assert len(short) <= 512 and HEADER.unpack_from(short)[1] & IS_TRUNCATED
    assert len(read_addresses(whole, "A")) == 100


def test_records_that_only_save_a_question_are_left_out_first():
    extra = [DnsRecord(f"p{number}.{NAME}", "A", "10.64.0.1") for number in range(40)]
    srv = [DnsRecord(NAME, "SRV", (0, 100, 80, NAME))]

    answer = write_answer(a_question("SRV"), NO_ERROR, srv, zone="cluster.local", additional=extra, max_bytes=512)

    _, flags, _, answers, _, additional = HEADER.unpack_from(answer)
    assert (answers, additional, flags & IS_TRUNCATED) == (1, 0, 0)


def test_a_client_with_options_gets_options_and_a_larger_answer():
    options = struct.pack(">BHHIH", 0, 41, 4096, 0, 0)
    message = bytearray(write_question(NAME, "A") + options)
    message[10:12] = b"\0\1"

    asked = read_question(bytes(message))

    assert asked.max_udp_bytes == 1232
    assert HEADER.unpack_from(write_answer(asked, NO_ERROR))[5] == 1


def test_an_answer_without_records_names_the_zone():
    answer = write_answer(a_question("AAAA"), NO_ERROR, zone="cluster.local")
    assert HEADER.unpack_from(answer)[4] == 1


@pytest.mark.parametrize("name", ["a" * 64, ".".join(["a" * 60] * 5), "a..b"])
def test_a_name_that_is_none_is_refused(name):
    with pytest.raises(DnsError):
        write_name(name)


@given(st.binary(max_size=600))
def test_any_bytes_are_a_question_or_an_error(data):
    try:
        found = read_question(data)
    except DnsError:
        return
    assert read_question(write_answer(found, NO_ERROR)[:2] + data[2:]).text == found.text


@given(st.binary(max_size=600))
def test_any_answer_of_another_server_is_read_without_an_exception(data):
    read_addresses(data, "A")
    read_addresses(write_question(NAME, "A")[:6] + b"\0\x09" + data, "AAAA")


def test_every_kind_of_record_can_be_written():
    records = [
        DnsRecord(NAME, "NS", "ns.dns.cluster.local"),
        DnsRecord(NAME, "PTR", "a.b"),
        DnsRecord(NAME, "TXT", "1.1.0"),
        DnsRecord(NAME, "AAAA", "2001:db8::1"),
        DnsRecord(NAME, "CNAME", "c.d"),
    ]
    assert HEADER.unpack_from(write_answer(a_question("ANY"), NO_ERROR, records))[3] == len(records) < len(KINDS)
