"""The supervisor's end of its Unix socket: accepts agents, receives their requests, sends replies and events.

Requests are handled by the supervisor; their format is supervisor_protocol's. Standard library only.
"""

from __future__ import annotations

import errno
import os
import selectors
import socket
from collections.abc import Callable
from typing import Any

from volcano.embedded.agent.processes.supervisor_protocol import (
    MAX_DESCRIPTORS_PER_MESSAGE,
    MAX_MESSAGE_BYTES,
    SOCKET,
    decode,
    encode,
)

RECEIVE_CHUNK_BYTES = 262144


class Connection:
    """One connected agent. Output that it has not read yet is buffered here."""

    def __init__(self, peer: socket.socket) -> None:
        self.socket = peer
        self.received = b""
        self.descriptors: list[int] = []
        self.unsent = b""

    @property
    def is_open(self) -> bool:
        return self.socket.fileno() >= 0

    def take_descriptors(self, count: int) -> list[int]:
        """The descriptors that came with a message; the caller closes them."""
        taken, self.descriptors = self.descriptors[:count], self.descriptors[count:]
        return taken


class AgentConnections:
    """All connected agents; `handle` is called with each request."""

    def __init__(self, selector: selectors.BaseSelector, handle: Callable[[Connection, dict[str, Any]], None]) -> None:
        self._selector, self._handle = selector, handle
        self._connections: dict[int, Connection] = {}

    def __len__(self) -> int:
        return len(self._connections)

    def listen(self, directory: str) -> None:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # Through the directory's descriptor: the path may be longer than a socket address can be.
        folder = os.open(directory, os.O_PATH | os.O_DIRECTORY)
        path = f"/proc/self/fd/{folder}/{SOCKET}"
        if os.path.lexists(path):
            os.unlink(path)
        before = os.umask(0o177)
        listener.bind(path)
        os.umask(before)
        os.close(folder)
        listener.listen(8)
        listener.setblocking(False)
        self._selector.register(listener, selectors.EVENT_READ, self._accept)

    def send(self, connection: Connection, message: dict[str, Any]) -> None:
        self._send_bytes(connection, encode(message))

    def broadcast(self, message: dict[str, Any]) -> None:
        line = encode(message)
        for connection in tuple(self._connections.values()):
            self._send_bytes(connection, line)

    def send_descriptor(self, connection: Connection, message: dict[str, Any], descriptor: int) -> None:
        """OSError while older output is unsent: a descriptor cannot wait in a buffer."""
        self._send_bytes(connection, b"")
        if connection.unsent:
            raise OSError(errno.EAGAIN, "the agent does not read its replies fast enough")
        line = encode(message)
        sent = socket.send_fds(connection.socket, [line], [descriptor])
        self._send_bytes(connection, line[sent:])

    def _accept(self, key: selectors.SelectorKey, _mask: int) -> None:
        peer, _ = key.fileobj.accept()  # type: ignore[union-attr]
        peer.setblocking(False)
        self._connections[peer.fileno()] = Connection(peer)
        self._selector.register(peer, selectors.EVENT_READ, self._transfer)

    def _transfer(self, key: selectors.SelectorKey, mask: int) -> None:
        connection = self._connections.get(key.fd)
        if connection is None:
            return
        try:
            if mask & selectors.EVENT_WRITE:
                self._send_bytes(connection, b"")
            if mask & selectors.EVENT_READ:
                self._receive(connection)
        except (OSError, ValueError):
            self._close(connection)

    def _receive(self, connection: Connection) -> None:
        received, descriptors, _, _ = socket.recv_fds(
            connection.socket, RECEIVE_CHUNK_BYTES, MAX_DESCRIPTORS_PER_MESSAGE
        )
        connection.descriptors += descriptors
        if not received:
            raise ConnectionResetError(errno.ECONNRESET, "the agent disconnected")
        *lines, connection.received = (connection.received + received).split(b"\n")
        if len(connection.received) > MAX_MESSAGE_BYTES:
            raise ValueError(f"a message of more than {MAX_MESSAGE_BYTES} bytes")
        for line in lines:
            self._handle(connection, decode(line))

    def _close(self, connection: Connection) -> None:
        self._connections.pop(connection.socket.fileno(), None)
        self._selector.unregister(connection.socket)
        connection.socket.close()
        for descriptor in connection.descriptors:
            os.close(descriptor)

    def _send_bytes(self, connection: Connection, output: bytes) -> None:
        connection.unsent += output
        try:
            while connection.unsent:
                connection.unsent = connection.unsent[connection.socket.send(connection.unsent) :]
        except BlockingIOError:
            pass
        except OSError:
            return  # the next read reports that the agent has disconnected
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if connection.unsent else 0)
        if self._selector.get_key(connection.socket).events != wanted:
            self._selector.modify(connection.socket, wanted, self._transfer)
