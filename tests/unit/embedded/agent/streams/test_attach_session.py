"""Attaching to a container that ends while its client still sends."""

from __future__ import annotations

import asyncio
import socket

import pytest
import uvloop

from volcano.embedded.agent.processes.container_attach import HEADER, SOCKET
from volcano.embedded.agent.streams.attach_session import AttachSession
from volcano.embedded.agent.streams.channels import CLOSE, ERROR, STDIN, STDOUT, SUCCESS


class ClientThatSendsLate:
    """Sends a line, and ends its input when the container has ended; takes output after that."""

    def __init__(self, has_ended: asyncio.Event) -> None:
        self._has_ended = has_ended
        self._has_closed = asyncio.Event()
        self.taken: list[tuple[int, bytes]] = []

    async def received(self):
        yield STDIN, b"you\n"
        await self._has_ended.wait()
        yield STDIN, b"more\n"
        yield CLOSE, b"\0"
        self._has_closed.set()
        await asyncio.get_running_loop().create_future()

    async def send(self, channel: int, content: bytes) -> None:
        await self._has_closed.wait()
        self.taken.append((channel, content))


@pytest.mark.parametrize("make_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_output_of_a_container_that_ends_while_its_client_sends_is_not_lost(tmp_path, make_loop):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(tmp_path / SOCKET))
        listener.listen()

        async def attach() -> list[tuple[int, bytes]]:
            has_ended = asyncio.Event()
            client = ClientThatSendsLate(has_ended)
            session = asyncio.ensure_future(AttachSession(client, stdin=True).run(tmp_path))
            peer = await asyncio.to_thread(lambda: listener.accept()[0])
            await asyncio.to_thread(peer.recv, 100)
            for number in range(3):
                content = b"hello %d\n" % number
                peer.sendall(HEADER.pack(STDOUT, len(content)) + content)
            peer.close()
            has_ended.set()
            assert await asyncio.wait_for(session, 60)
            return client.taken

        with asyncio.Runner(loop_factory=make_loop) as runner:
            taken = runner.run(attach())

    expected = [(STDOUT, b"hello %d\n" % number) for number in range(3)]
    assert taken == [*expected, (ERROR, SUCCESS)]
