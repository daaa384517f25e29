"""Names outside the cluster: the machine's own /etc/hosts, then the name servers of its resolv.conf, and no others."""

from __future__ import annotations

import asyncio
import contextlib
import os
import struct
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Final

from volcano.api.service_network import DNS_ADDRESS
from volcano.embedded.agent.network.dns_answers import DnsRecord
from volcano.embedded.agent.network.dns_wire import (
    HEADER,
    MAX_MESSAGE_BYTES,
    NO_ERROR,
    SERVER_FAILURE,
    Question,
    write_answer,
)

NAME_SERVER_PORT: Final = 53
MAX_NAME_SERVERS: Final = 3
ANSWER_TIMEOUT: Final = timedelta(seconds=2)
MAX_QUESTIONS_IN_FLIGHT: Final = 256
MAX_HOSTS_BYTES: Final = 1024 * 1024
RESOLVER_FILE: Final = Path("/etc/resolv.conf")
HOSTS_FILE: Final = Path("/etc/hosts")

NameServer = tuple[str, int]


def machine_name_servers(file: Path = RESOLVER_FILE) -> list[NameServer]:
    """The name servers that the machine itself asks, in its order."""
    try:
        lines = file.read_text(errors="replace").splitlines()
    except OSError:
        return []
    found = [
        words[1].partition("%")[0] for line in lines if len(words := line.split()) > 1 and words[0] == "nameserver"
    ]
    return [(address, NAME_SERVER_PORT) for address in found if address != DNS_ADDRESS][:MAX_NAME_SERVERS]


class DnsUpstream:
    """Answers what the cluster does not know."""

    def __init__(
        self, name_servers: Callable[[], list[NameServer]] = machine_name_servers, hosts: Path = HOSTS_FILE
    ) -> None:
        self._name_servers, self._hosts_file = name_servers, hosts
        self._hosts: dict[str, list[str]] = {}
        self._hosts_stamp: tuple[int, int] | None = None
        self._in_flight = 0

    async def ask(self, question: Question, message: bytes, *, over_tcp: bool) -> bytes:
        """The answer to a message, or a server failure when no name server answers."""
        known = self._from_hosts(question)
        if known:
            return write_answer(question, NO_ERROR, known)
        if self._in_flight < MAX_QUESTIONS_IN_FLIGHT:
            self._in_flight += 1
            try:
                for server in self._name_servers():
                    with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
                        async with asyncio.timeout(ANSWER_TIMEOUT.total_seconds()):
                            answered = await (_ask_tcp if over_tcp else _ask_udp)(server, message)
                        return message[:2] + answered[2:]
            finally:
                self._in_flight -= 1
        return write_answer(question, SERVER_FAILURE)

    def _from_hosts(self, question: Question) -> list[DnsRecord]:
        kind = question.kind_name
        if kind not in ("A", "AAAA"):
            return []
        self._read_hosts()
        return [
            DnsRecord(question.text, kind, address)
            for address in self._hosts.get(question.text, ())
            if (":" in address) == (kind == "AAAA")
        ]

    def _read_hosts(self) -> None:
        try:
            status = self._hosts_file.stat()
            stamp = (status.st_mtime_ns, status.st_size)
            if stamp == self._hosts_stamp:
                return
            text = self._hosts_file.read_bytes()[:MAX_HOSTS_BYTES].decode(errors="replace")
        except OSError:
            self._hosts, self._hosts_stamp = {}, None
            return
        self._hosts, self._hosts_stamp = {}, stamp
        for line in text.splitlines():
            address, *names = line.partition("#")[0].split() or [""]
            for name in names:
                if not address.startswith("127.") and address != "::1":  # the machine itself, not the pod
                    self._hosts.setdefault(name.lower().rstrip("."), []).append(address.partition("%")[0])


class _Waiting(asyncio.DatagramProtocol):
    """One question to one server; an answer with another number or question is ignored."""

    def __init__(self, message: bytes) -> None:
        self._message = message
        self.answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def datagram_received(self, data: bytes, _address: object) -> None:
        if len(data) >= HEADER.size and data[:2] == self._message[:2] and not self.answer.done():
            self.answer.set_result(data)

    def error_received(self, error: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)


async def _ask_udp(server: NameServer, message: bytes) -> bytes:
    sent = os.urandom(2) + message[2:]  # with a number and a port that cannot be guessed
    loop = asyncio.get_running_loop()
    transport, waiting = await loop.create_datagram_endpoint(lambda: _Waiting(sent), remote_addr=server)
    try:
        transport.sendto(sent)
        return await waiting.answer
    finally:
        transport.close()


async def _ask_tcp(server: NameServer, message: bytes) -> bytes:
    reader, writer = await asyncio.open_connection(*server)
    try:
        writer.write(struct.pack(">H", len(message)) + message)
        (length,) = struct.unpack(">H", await reader.readexactly(2))
        return (await reader.readexactly(length))[:MAX_MESSAGE_BYTES]
    finally:
        writer.close()
