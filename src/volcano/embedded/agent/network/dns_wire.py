"""DNS messages as bytes: reads questions, writes answers. Pure.

Only what a server of one zone needs: one question per message, a few kinds of records. Messages of other servers are
passed on as they are.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence
from typing import Final

import msgspec

from volcano.embedded.agent.network.dns_answers import DnsRecord

HEADER: Final = struct.Struct(">HHHHHH")
KINDS: Final = {"A": 1, "NS": 2, "CNAME": 5, "SOA": 6, "PTR": 12, "TXT": 16, "AAAA": 28, "SRV": 33, "ANY": 255}
KIND_NAMES: Final = {number: name for name, number in KINDS.items()}
INTERNET: Final = 1
OPTIONS_KIND: Final = 41
NO_ERROR, FORMAT_ERROR, SERVER_FAILURE, NAME_ERROR, NOT_IMPLEMENTED = 0, 1, 2, 3, 4
IS_ANSWER, IS_AUTHORITATIVE, IS_TRUNCATED = 0x8000, 0x0400, 0x0200
RECURSION_DESIRED, RECURSION_AVAILABLE = 0x0100, 0x0080
OPERATION_BITS: Final = 0x7800
POINTER_TO_QUESTION: Final = b"\xc0\x0c"
TIME_TO_LIVE_SECONDS: Final = 5
MIN_UDP_BYTES, MAX_UDP_BYTES = 512, 1232
MAX_MESSAGE_BYTES: Final = 65535
MAX_NAME_BYTES: Final = 255
MAX_LABEL_BYTES: Final = 63
ADDRESS_BYTES: Final = {"A": 4, "AAAA": 16}


class DnsError(ValueError):
    """The message is not a question that can be read."""


class Question(msgspec.Struct, frozen=True):
    """A question as it arrived. `text` is its name in lower case, without the last dot."""

    identity: int
    flags: int
    text: str
    kind: int
    raw: bytes  # the question section
    max_udp_bytes: int = MIN_UDP_BYTES
    has_options: bool = False
    klass: int = INTERNET

    @property
    def kind_name(self) -> str:
        return KIND_NAMES.get(self.kind, str(self.kind))

    @property
    def is_standard(self) -> bool:
        return not self.flags & OPERATION_BITS and self.klass == INTERNET


def read_question(message: bytes) -> Question:
    """The question of a message; DnsError when it has none or more than one."""
    if len(message) < HEADER.size:
        raise DnsError("shorter than a header")
    identity, flags, questions, answers, authorities, additional = HEADER.unpack_from(message)
    if flags & IS_ANSWER or questions != 1 or answers or authorities:
        raise DnsError("not a message with one question")
    labels, end = _read_name(message, HEADER.size)
    if end + 4 > len(message):
        raise DnsError("the question is cut off")
    kind, klass = struct.unpack_from(">HH", message, end)
    raw = message[HEADER.size : end + 4]
    size, has_options = MIN_UDP_BYTES, False
    rest = message[end + 4 :]
    if additional and len(rest) >= 11 and rest[:3] == struct.pack(">BH", 0, OPTIONS_KIND):
        size, has_options = struct.unpack_from(">H", rest, 3)[0], True
    text = ".".join(label.decode("latin-1") for label in labels).lower()
    return Question(identity, flags, text, kind, raw, max(MIN_UDP_BYTES, min(size, MAX_UDP_BYTES)), has_options, klass)


def write_question(name: str, kind: str) -> bytes:
    header = HEADER.pack(0, RECURSION_DESIRED, 1, 0, 0, 0)
    return header + write_name(name) + struct.pack(">HH", KINDS[kind], INTERNET)


def read_addresses(message: bytes, kind: str) -> list[str]:
    """The addresses of one kind in an answer of another server; none where it cannot be read."""
    found: list[str] = []
    try:
        _, _, _, answers, _, _ = HEADER.unpack_from(message)
        _, end = _read_name(message, HEADER.size)
        at = end + 4
        for _ in range(answers):
            at = _skip_name(message, at)
            number, _, _, length = struct.unpack_from(">HHIH", message, at)
            data, at = message[at + 10 : at + 10 + length], at + 10 + length
            if number == KINDS[kind] and len(data) == ADDRESS_BYTES[kind]:
                found.append(socket.inet_ntop(socket.AF_INET if kind == "A" else socket.AF_INET6, data))
    except (DnsError, struct.error, IndexError):
        return found
    return found


def write_answer(
    question: Question,
    code: int,
    records: Sequence[DnsRecord] = (),
    *,
    zone: str = "",
    additional: Sequence[DnsRecord] = (),
    max_bytes: int = MAX_MESSAGE_BYTES,
) -> bytes:
    """The answer. With `zone` it is that zone's own, and names the zone where there are no records."""
    flags = IS_ANSWER | RECURSION_AVAILABLE | (question.flags & RECURSION_DESIRED) | code
    flags |= IS_AUTHORITATIVE if zone else 0
    authority = _start_of_authority(zone) if zone and not records else b""
    options = struct.pack(">BHHIH", 0, OPTIONS_KIND, MAX_UDP_BYTES, 0, 0) if question.has_options else b""
    answers = [_record(each, question) for each in records]
    extras = [_record(each, question) for each in additional]
    if _size(question, answers, extras, authority, options) > max_bytes:
        extras = []  # the records that only save another question
    if _size(question, answers, extras, authority, options) > max_bytes:
        answers, authority = [], b""
        flags |= IS_TRUNCATED
    counts = (1, len(answers), 1 if authority else 0, len(extras) + (1 if options else 0))
    header = HEADER.pack(question.identity, flags, *counts)
    return b"".join((header, question.raw, *answers, authority, *extras, options))


def write_name(name: str) -> bytes:
    encoded = b""
    for label in name.split(".") if name else ():
        raw = label.encode("latin-1", errors="replace")
        if not 0 < len(raw) <= MAX_LABEL_BYTES:
            raise DnsError(f"{name!r} has a label of {len(raw)} bytes")
        encoded += bytes((len(raw),)) + raw
    if len(encoded) >= MAX_NAME_BYTES:
        raise DnsError(f"{name!r} is longer than a name may be")
    return encoded + b"\0"


def _read_name(message: bytes, at: int) -> tuple[list[bytes], int]:
    """Labels, and where the name ends. A question's name comes first, so nothing precedes it to point to."""
    labels: list[bytes] = []
    start = at
    while True:
        if at >= len(message) or at - start > MAX_NAME_BYTES:
            raise DnsError("the name does not end")
        length = message[at]
        if length == 0:
            return labels, at + 1
        if length > MAX_LABEL_BYTES:
            raise DnsError("the name has a label that is too long")
        labels.append(message[at + 1 : at + 1 + length])
        at += 1 + length


def _skip_name(message: bytes, at: int) -> int:
    """Where a name ends that may end in a pointer to an earlier one."""
    while 0 < (length := message[at]) < POINTER_TO_QUESTION[0]:
        at += 1 + length
    return at + (1 if length == 0 else 2)


def _record(record: DnsRecord, question: Question) -> bytes:
    name = POINTER_TO_QUESTION if record.name == question.text else write_name(record.name)
    data = _data(record)
    return name + struct.pack(">HHIH", KINDS[record.kind], INTERNET, TIME_TO_LIVE_SECONDS, len(data)) + data


def _data(record: DnsRecord) -> bytes:
    match record.value:
        case str(text) if record.kind == "A":
            return socket.inet_aton(text)
        case str(text) if record.kind == "AAAA":
            return socket.inet_pton(socket.AF_INET6, text)
        case str(text) if record.kind == "TXT":
            return bytes((len(text.encode()),)) + text.encode()
        case str(text):
            return write_name(text)
        case (priority, weight, port, target):
            return struct.pack(">HHH", priority, weight, port) + write_name(target)
    raise DnsError(f"a record of kind {record.kind} has no such value")


def _start_of_authority(zone: str) -> bytes:
    numbers = struct.pack(">IIIII", 1, 7200, 1800, 86400, TIME_TO_LIVE_SECONDS)
    data = write_name(f"ns.dns.{zone}") + write_name(f"hostmaster.{zone}") + numbers
    return write_name(zone) + struct.pack(">HHIH", KINDS["SOA"], INTERNET, TIME_TO_LIVE_SECONDS, len(data)) + data


def _size(question: Question, answers: list[bytes], extras: list[bytes], authority: bytes, options: bytes) -> int:
    parts = (question.raw, *answers, *extras, authority, options)
    return HEADER.size + sum(len(part) for part in parts)
