"""The attach socket of a container: sends its output to the attached clients and their input to the container.

Runs in the container's holder process. The socket is in the container's folder; each client is one connection, with
frames of channel, length and content in both directions. Standard library only; nothing here blocks.
"""

from __future__ import annotations

import os
import select
import socket
import struct

from volcano.embedded.agent.kernel import terminals

SOCKET = "attach.sock"
HEADER = struct.Struct("!BI")
STDIN, STDOUT, STDERR, RESIZE, CLOSE = 0, 1, 2, 4, 255
SIZE = struct.Struct("!HH")
MAX_FRAME_BYTES = 64 * 1024
IO_CHUNK_BYTES = 64 * 1024
MAX_CLIENTS = 16
MAX_UNSENT_BYTES = 256 * 1024
"""Buffered output for a slow client at which reading the container's output stops."""
MAX_PENDING_INPUT_BYTES = 64 * 1024
"""Buffered input for a container that does not read at which reading from clients stops."""
STUCK_CLIENT_TIMEOUT_SECONDS = 60
"""A client that blocks the container's output for this long is disconnected."""
FINAL_OUTPUT_TIMEOUT_SECONDS = 10
"""How long the last output may take to send after the container has ended."""


def listen(directory: str) -> socket.socket:
    """Listen through the directory's descriptor: the path may be longer than a socket address can be."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    folder = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    path = f"/proc/self/fd/{folder}/{SOCKET}"
    try:
        if os.path.lexists(path):
            os.unlink(path)
        before = os.umask(0o177)
        listener.bind(path)
        os.umask(before)
        listener.listen(4)
    finally:
        os.close(folder)
    listener.setblocking(False)
    return listener


class _Client:
    def __init__(self, peer: socket.socket) -> None:
        self.peer = peer
        self.received = b""
        self.unsent = b""
        self.gives_input = False


class Attachments:
    """`feed` is the writing end of the container's input, -1 if it has none; `terminal` the master of its terminal."""

    def __init__(self, listener: socket.socket, *, feed: int, terminal: int, once: bool) -> None:
        self._listener, self._feed, self._terminal, self._once = listener, feed, terminal, once
        self._clients: dict[int, _Client] = {}
        self._pending_input = b""
        self._is_over = False  # no further input is accepted
        if feed >= 0:
            os.set_blocking(feed, False)

    @property
    def is_behind(self) -> bool:
        """Whether reading the container's output must stop until a client has caught up."""
        return any(len(client.unsent) > MAX_UNSENT_BYTES for client in self._clients.values())

    def wanted(self) -> dict[int, int]:
        """The descriptors to poll, and their events."""
        reading = select.POLLIN if len(self._pending_input) <= MAX_PENDING_INPUT_BYTES else 0
        found = {fd: reading | (select.POLLOUT if each.unsent else 0) for fd, each in self._clients.items()}
        found[self._listener.fileno()] = select.POLLIN
        if self._pending_input and self._feed >= 0:
            found[self._feed] = select.POLLOUT
        return found

    def happened(self, descriptor: int, events: int) -> None:
        if descriptor == self._listener.fileno():
            self._accept()
        elif descriptor == self._feed and descriptor not in self._clients:
            self._write_input()
        elif (client := self._clients.get(descriptor)) is not None:
            if events & select.POLLOUT:
                self._send(client)
            if events & ~select.POLLOUT and descriptor in self._clients:
                self._receive(client)

    def write(self, stream: bytes, output: bytes) -> None:
        channel = STDERR if stream == b"stderr" else STDOUT
        for client in tuple(self._clients.values()):
            client.unsent += HEADER.pack(channel, len(output)) + output
            self._send(client)

    def drop_stuck_clients(self) -> None:
        for client in tuple(self._clients.values()):
            if len(client.unsent) > MAX_UNSENT_BYTES:
                self._drop(client)

    def finish(self) -> None:
        """The container has ended: send the buffered output and disconnect all clients."""
        poll = select.poll()
        waiting = {descriptor for descriptor, client in self._clients.items() if client.unsent}
        for descriptor in waiting:
            poll.register(descriptor, select.POLLOUT)
        while waiting and (ready := poll.poll(FINAL_OUTPUT_TIMEOUT_SECONDS * 1000)):
            for descriptor, _ in ready:
                client = self._clients.get(descriptor)
                if client is not None:
                    self._send(client)
                if client is None or not client.unsent or descriptor not in self._clients:
                    poll.unregister(descriptor)
                    waiting.discard(descriptor)
        for client in self._clients.values():
            client.peer.close()
        self._clients.clear()

    # -- clients ----------------------------------------------------------------------------------------------
    def _accept(self) -> None:
        try:
            peer, _ = self._listener.accept()
        except OSError:
            return
        if len(self._clients) >= MAX_CLIENTS:
            peer.close()
            return
        peer.setblocking(False)
        self._clients[peer.fileno()] = _Client(peer)

    def _send(self, client: _Client) -> None:
        try:
            while client.unsent:
                client.unsent = client.unsent[client.peer.send(client.unsent[:IO_CHUNK_BYTES], socket.MSG_NOSIGNAL) :]
        except BlockingIOError:
            pass
        except OSError:
            self._drop(client)

    def _receive(self, client: _Client) -> None:
        try:
            received = client.peer.recv(IO_CHUNK_BYTES)
        except BlockingIOError:
            return
        except OSError:
            received = b""
        if not received:
            self._drop(client)
            return
        client.received += received
        while len(client.received) >= HEADER.size:
            channel, length = HEADER.unpack_from(client.received)
            if length > MAX_FRAME_BYTES:
                self._drop(client)
                return
            if len(client.received) < HEADER.size + length:
                return
            content = client.received[HEADER.size : HEADER.size + length]
            client.received = client.received[HEADER.size + length :]
            self._take(client, channel, content)

    def _take(self, client: _Client, channel: int, content: bytes) -> None:
        if channel == STDIN:
            client.gives_input = True
            self._pending_input += content if self._feed >= 0 else b""
            self._write_input()
        elif channel == CLOSE and client.gives_input and self._once:
            self._end_input()
        elif channel == RESIZE and self._terminal >= 0 and len(content) == SIZE.size:
            try:
                terminals.resize(self._terminal, *SIZE.unpack(content))
            except OSError:
                pass

    def _drop(self, client: _Client) -> None:
        self._clients.pop(client.peer.fileno(), None)
        client.peer.close()
        if client.gives_input and self._once:
            self._end_input()

    # -- the container's input --------------------------------------------------------------------------------
    def _write_input(self) -> None:
        try:
            while self._pending_input and self._feed >= 0:
                self._pending_input = self._pending_input[os.write(self._feed, self._pending_input[:IO_CHUNK_BYTES]) :]
        except BlockingIOError:
            return
        except OSError:
            self._pending_input = b""  # the container no longer reads
        self._close_if_over()

    def _end_input(self) -> None:
        """Close the input once the container has read what was sent before."""
        self._is_over = True
        self._close_if_over()

    def _close_if_over(self) -> None:
        if self._is_over and not self._pending_input and self._feed >= 0 and self._terminal < 0:
            os.close(self._feed)
            self._feed = -1
