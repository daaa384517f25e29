"""The name server of the pods: cluster names from dns_answers, all others from dns_upstream; over UDP and TCP."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import struct
from datetime import timedelta
from typing import Final

from volcano.api.service_network import CLUSTER_DOMAIN
from volcano.embedded.agent.network.client_slots import ClientSlots, SlotLimits
from volcano.embedded.agent.network.dns_answers import ClusterNames, DnsAnswer, DnsRecord
from volcano.embedded.agent.network.dns_upstream import DnsUpstream
from volcano.embedded.agent.network.dns_wire import (
    FORMAT_ERROR,
    HEADER,
    IS_ANSWER,
    MAX_MESSAGE_BYTES,
    NAME_ERROR,
    NO_ERROR,
    NOT_IMPLEMENTED,
    SERVER_FAILURE,
    DnsError,
    Question,
    read_addresses,
    read_question,
    write_answer,
    write_question,
)
from volcano.embedded.agent.task_set import TaskSet

log = logging.getLogger(__name__)
TCP_CONNECTIONS: Final = SlotLimits(total=128, per_address=32)
IDLE_TCP_TIMEOUT: Final = timedelta(seconds=10)
MAX_ALIASES: Final = 8
"""An external name may lead to another one; so many are followed."""


class DnsServer:
    """Serves one address."""

    def __init__(self, names: ClusterNames, upstream: DnsUpstream) -> None:
        self._names, self._upstream = names, upstream
        self._tasks = TaskSet()
        self._datagrams: asyncio.DatagramTransport | None = None
        self._server: asyncio.Server | None = None
        self._connections = ClientSlots(TCP_CONNECTIONS)

    async def open(self, address: str, port: int = 0) -> int:
        """Listen; returns the port, which is the same for UDP and TCP. OSError when that is not possible."""
        loop = asyncio.get_running_loop()
        self._server = await asyncio.start_server(self._on_connection, address, port)
        port = self._server.sockets[0].getsockname()[1]
        try:
            self._datagrams, _ = await loop.create_datagram_endpoint(
                lambda: _Datagrams(self), local_addr=(address, port)
            )
        except OSError:
            self._server.close()
            raise
        return int(port)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        if self._datagrams is not None:
            self._datagrams.close()
        await self._tasks.cancel_all()

    def on_datagram(self, message: bytes, client: tuple[str, int], transport: asyncio.DatagramTransport) -> None:
        """Answer at once where the cluster knows the name; other names are asked for in the background."""
        answer = self.answer_now(message)
        if isinstance(answer, Question):
            self._tasks.start(self._answer_later(answer, message, client, transport))
        elif answer:
            transport.sendto(answer, client)

    def answer_now(self, message: bytes, *, over_tcp: bool = False) -> bytes | Question:
        """The answer, empty for what is no question at all; the question itself when others must be asked."""
        try:
            question = read_question(message)
        except DnsError:
            return _format_error(message)
        if not question.is_standard:
            return write_answer(question, NOT_IMPLEMENTED)
        found = self._names.resolve(question.text, question.kind_name)
        if found is None or any(record.kind == "CNAME" for record in found.records):
            return question
        return _written(question, found, over_tcp=over_tcp)

    async def _answer_later(
        self, question: Question, message: bytes, client: tuple[str, int], transport: asyncio.DatagramTransport
    ) -> None:
        answer = await self.answer(question, message, over_tcp=False)
        if not transport.is_closing():
            transport.sendto(answer, client)

    async def answer(self, question: Question, message: bytes, *, over_tcp: bool) -> bytes:
        found = self._names.resolve(question.text, question.kind_name)
        if found is None:
            return await self._upstream.ask(question, message, over_tcp=over_tcp)
        return _written(question, await self._follow(question, found), over_tcp=over_tcp)

    async def _follow(self, question: Question, found: DnsAnswer) -> DnsAnswer:
        """Add what an external name leads to, as resolvers expect from a server that they ask to recurse."""
        records = list(found.records)
        kind = question.kind_name
        while kind != "CNAME" and records and records[-1].kind == "CNAME" and len(records) <= MAX_ALIASES:
            target = str(records[-1].value)
            further = self._names.resolve(target, kind)
            if further is None:
                return DnsAnswer(True, (*records, *await self._ask_for(target, kind)))
            if not further.records:
                break
            records += further.records
        return DnsAnswer(True, tuple(records))

    async def _ask_for(self, name: str, kind: str) -> list[DnsRecord]:
        """The addresses of a name outside, from the machine's name servers."""
        if kind not in ("A", "AAAA"):
            return []
        try:
            asked = write_question(name, kind)
        except DnsError:
            return []
        reply = await self._upstream.ask(read_question(asked), asked, over_tcp=False)
        return [DnsRecord(name, kind, address) for address in read_addresses(reply, kind)]

    async def _on_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with self._connections.taken(writer):
                while await self._answer_one(reader, writer):
                    pass
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            writer.transport.abort()  # closing would wait until the client has read the rest
        finally:
            with contextlib.suppress(OSError):
                writer.close()

    async def _answer_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Read a question and answer it; False for what is no question."""
        async with asyncio.timeout(IDLE_TCP_TIMEOUT.total_seconds()):
            (length,) = struct.unpack(">H", await reader.readexactly(2))
            message = await reader.readexactly(length)
        answer = self.answer_now(message, over_tcp=True)
        if isinstance(answer, Question):
            answer = await self.answer(answer, message, over_tcp=True)
        if not answer:
            return False
        writer.write(struct.pack(">H", len(answer)) + answer)
        async with asyncio.timeout(IDLE_TCP_TIMEOUT.total_seconds()):
            await writer.drain()
        return True


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self, server: DnsServer) -> None:
        self._server = server
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.DatagramTransport) -> None:  # type: ignore[override]
        self._transport = transport

    def datagram_received(self, data: bytes, address: tuple[str, int]) -> None:
        assert self._transport is not None, "datagrams come after the connection"
        self._server.on_datagram(data, address, self._transport)


def _written(question: Question, found: DnsAnswer, *, over_tcp: bool) -> bytes:
    code = NO_ERROR if found.exists else NAME_ERROR
    limit = MAX_MESSAGE_BYTES if over_tcp else question.max_udp_bytes
    zone = CLUSTER_DOMAIN if question.text.endswith(CLUSTER_DOMAIN) else question.text.partition(".")[2]
    try:
        return write_answer(question, code, found.records, zone=zone, additional=found.additional, max_bytes=limit)
    except DnsError as error:
        log.warning("the answer for %s cannot be written: %s", question.text, error)
        return write_answer(question, SERVER_FAILURE)


def _format_error(message: bytes) -> bytes:
    """An error for a question that cannot be read; nothing for an answer, which would start a loop of errors."""
    if len(message) < HEADER.size or message[2] & (IS_ANSWER >> 8):
        return b""
    return message[:2] + struct.pack(">HHHHH", IS_ANSWER | FORMAT_ERROR, 0, 0, 0, 0)
