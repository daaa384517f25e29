"""The attach socket of a container: input, output, slow clients and clients that leave."""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from volcano.embedded.agent.processes.container_attach import (
    CLOSE,
    HEADER,
    MAX_CLIENTS,
    MAX_FRAME_BYTES,
    MAX_PENDING_INPUT_BYTES,
    SOCKET,
    STDERR,
    STDIN,
    STDOUT,
    Attachments,
    listen,
)


class Container:
    """A container's end of its input, and the attachments to it."""

    def __init__(self, folder: Path, *, once: bool) -> None:
        self.path = folder / SOCKET
        self.stdin, feed = os.pipe()
        os.set_blocking(self.stdin, False)
        self.attached = Attachments(listen(str(folder)), feed=feed, terminal=-1, once=once)

    def settle(self) -> None:
        """Until nothing more happens by itself."""
        while True:
            poll = select.poll()
            for descriptor, events in self.attached.wanted().items():
                poll.register(descriptor, events)
            ready = poll.poll(0)
            if not ready:
                return
            for descriptor, events in ready:
                self.attached.happened(descriptor, events)

    def client(self) -> socket.socket:
        client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        client.connect(str(self.path))
        client.settimeout(5)
        self.settle()
        return client

    def heard(self) -> bytes | None:
        """What came to its input; nothing at its end, None when it is silent."""
        try:
            return os.read(self.stdin, 2**20)
        except BlockingIOError:
            return None


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    long = tmp_path / ("long" * 30)
    long.mkdir()
    return long


@pytest.fixture
def container(tmp_path: Path) -> Iterator[Container]:
    given = Container(tmp_path, once=True)
    yield given
    os.close(given.stdin)


def frame(channel: int, content: bytes = b"") -> bytes:
    return HEADER.pack(channel, len(content)) + content


def test_a_folder_may_be_deeper_than_a_socket_address(folder):
    with listen(str(folder)):
        assert (folder / SOCKET).is_socket()


def test_everyone_hears_and_anyone_may_speak(container):
    one, other = container.client(), container.client()

    container.attached.write(b"stdout", b"good day")
    container.attached.write(b"stderr", b"oh")
    one.sendall(frame(STDIN, b"hello "))
    container.settle()
    other.sendall(frame(STDIN, b"you"))
    container.settle()

    expected = frame(STDOUT, b"good day") + frame(STDERR, b"oh")
    assert one.recv(100) == other.recv(100) == expected
    assert container.heard() == b"hello you"


def test_an_input_given_once_ends_with_the_first_who_spoke_or_when_told(container):
    listener, speaker = container.client(), container.client()
    listener.close()
    container.settle()
    assert container.heard() is None

    speaker.sendall(frame(STDIN, b"last words") + frame(CLOSE))
    container.settle()

    assert (container.heard(), container.heard()) == (b"last words", b"")


def test_an_input_that_stays_open_does_not_end_with_anyone(tmp_path):
    container = Container(tmp_path, once=False)
    with container.client() as client:
        client.sendall(frame(STDIN, b"x") + frame(CLOSE))
        container.settle()

    container.settle()

    assert (container.heard(), container.heard()) == (b"x", None)


def test_a_container_that_does_not_read_makes_its_clients_wait(container):
    client = container.client()
    client.setblocking(False)
    sent = 0
    with pytest.raises(BlockingIOError):
        for _ in range(10_000):
            sent += client.send(frame(STDIN, bytes(MAX_FRAME_BYTES)))
            container.settle()

    assert sent < 4 * 2**20
    assert container.attached.wanted()[next(iter(container.attached._clients))] == 0
    read = 0
    while (piece := container.heard()) is not None:
        read += len(piece)
        container.settle()
    assert read > MAX_PENDING_INPUT_BYTES


def test_a_client_that_does_not_read_holds_the_output_up_until_it_is_left_behind(container):
    silent, attentive = container.client(), container.client()
    written = 0
    while not container.attached.is_behind and written < 2**24:
        container.attached.write(b"stdout", bytes(2**16))
        written += 2**16
        attentive.recv(2**20)

    assert container.attached.is_behind
    container.attached.drop_stuck_clients()

    assert not container.attached.is_behind
    while silent.recv(2**20):
        pass


def test_too_many_clients_and_too_large_frames_are_turned_away(container):
    clients = [container.client() for _ in range(MAX_CLIENTS + 1)]
    assert clients[-1].recv(1) == b""

    clients[0].sendall(HEADER.pack(STDIN, MAX_FRAME_BYTES + 1))
    container.settle()

    assert clients[0].recv(1) == b""


def test_the_last_words_reach_everyone_before_the_end(container):
    client = container.client()
    for _ in range(8):
        container.attached.write(b"stdout", b"x" * 1000)

    container.attached.finish()

    received = b""
    while piece := client.recv(2**16):
        received += piece
    assert received == frame(STDOUT, b"x" * 1000) * 8
