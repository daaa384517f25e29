"""One exec: connects a client's channels with the standard streams of a command, and sends its exit status."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from volcano.embedded.agent.kernel import terminals
from volcano.embedded.agent.streams.channels import (
    CLOSE,
    ERROR,
    RESIZE,
    STDERR,
    STDIN,
    STDOUT,
    SUCCESS,
    Channels,
    parse_size,
)

READ_CHUNK_BYTES: Final = 32 * 1024

RunCommand = Callable[[list[int]], Awaitable[int]]
"""Runs the command with these standard streams and returns its exit code."""


class ExecSession:
    """The streams of one command and the client that uses them."""

    def __init__(self, client: Channels, *, stdin: bool, stderr: bool, terminal: bool) -> None:
        self._client, self._has_stdin, self._has_stderr, self._terminal = client, stdin, stderr, terminal
        self._input = -1  # our end of the command's input
        self._outputs: dict[int, int] = {}  # our end → channel
        self._inlet: socket.socket | None = None

    async def run(self, command: RunCommand) -> None:
        command_ends = self._make_streams()
        try:
            running = asyncio.ensure_future(self._run(command, command_ends))
            if self._terminal:
                await self._take_terminal(running)
            incoming = asyncio.ensure_future(self._receive())
            outgoing = [asyncio.ensure_future(self._pump(end, channel)) for end, channel in self._outputs.items()]
            try:
                await asyncio.wait((running, incoming), return_when=asyncio.FIRST_COMPLETED)
                if running.done():
                    if outgoing:
                        await asyncio.wait(outgoing, timeout=5)
                    await self._client.send(ERROR, status_of(running))
            finally:
                for task in (running, incoming, *outgoing):
                    task.cancel()
                await asyncio.gather(running, incoming, *outgoing, return_exceptions=True)
        finally:
            for end in {self._input, *self._outputs} - {-1}:
                with contextlib.suppress(OSError):
                    os.close(end)

    def _make_streams(self) -> list[int]:
        if self._terminal:
            # The terminal is opened inside the container, where it has a path; its master end arrives through a socket.
            self._inlet, outlet = socket.socketpair()
            self._inlet.setblocking(False)
            return [outlet.detach()]
        if self._has_stdin:
            stdin, self._input = os.pipe()
            os.set_blocking(self._input, False)
        else:
            stdin = os.open("/dev/null", os.O_RDONLY)
        out, stdout = os.pipe()
        err, stderr = os.pipe()
        for end in (out, err):
            os.set_blocking(end, False)
        self._outputs = {out: STDOUT, err: STDERR if self._has_stderr else STDOUT}
        return [stdin, stdout, stderr]

    async def _take_terminal(self, running: asyncio.Future[int]) -> None:
        """Wait for the terminal's master end; a command that fails early never opens one."""
        assert self._inlet is not None, "made with the streams"
        arrived = asyncio.ensure_future(_readable(self._inlet.fileno()))
        await asyncio.wait((arrived, running), return_when=asyncio.FIRST_COMPLETED)
        arrived.cancel()
        with contextlib.suppress(OSError):
            _, descriptors, _, _ = socket.recv_fds(self._inlet, 16, 1)
            for master in descriptors:
                os.set_blocking(master, False)
                self._input, self._outputs = master, {master: STDOUT}
        self._inlet.close()

    async def _run(self, command: RunCommand, command_ends: list[int]) -> int:
        try:
            return await command(command_ends)
        finally:
            for end in command_ends:
                os.close(end)

    async def _pump(self, end: int, channel: int) -> None:
        while True:
            chunk = await _read(end)
            if not chunk:
                return
            await self._client.send(channel, chunk)

    async def _receive(self) -> None:
        """Pass input on; returns when the client disconnects."""
        async for channel, content in self._client.received():
            if channel == STDIN:
                await self._feed(content)
            elif channel == RESIZE:
                self._resize(content)
            elif channel == CLOSE and content[:1] == b"\0":
                self._end_input()

    async def _feed(self, content: bytes) -> None:
        view = memoryview(content)
        while view and self._input >= 0:
            try:
                view = view[os.write(self._input, view) :]
            except BlockingIOError:
                await _writable(self._input)
            except OSError:
                return  # the command no longer reads

    def _end_input(self) -> None:
        if self._terminal or self._input < 0:
            return
        os.close(self._input)
        self._input = -1

    def _resize(self, content: bytes) -> None:
        size = parse_size(content)
        if self._terminal and size is not None:
            with contextlib.suppress(OSError):
                terminals.resize(self._input, size.rows, size.columns)


def status_of(ended: asyncio.Future[int]) -> bytes:
    """The result as the Status object that clients expect."""
    error = ended.exception()
    if error is not None:
        failure = {"metadata": {}, "status": "Failure", "message": str(error), "reason": "InternalError", "code": 500}
        return msgspec.json.encode(failure)
    code = ended.result()
    if code == 0:
        return SUCCESS
    return msgspec.json.encode(
        {
            "metadata": {},
            "status": "Failure",
            "message": f"command terminated with non-zero exit code: exit status {code}",
            "reason": "NonZeroExitCode",
            "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
        }
    )


async def _read(end: int) -> bytes:
    """Bytes, or none at the end of the stream; a terminal without a process ends too."""
    while True:
        try:
            return os.read(end, READ_CHUNK_BYTES)
        except BlockingIOError:
            pass
        except OSError:
            return b""
        await _readable(end)


async def _readable(end: int) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_reader(end, _settle, ready)
    try:
        await ready
    finally:
        loop.remove_reader(end)


async def _writable(end: int) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_writer(end, _settle, ready)
    try:
        await ready
    finally:
        loop.remove_writer(end)


def _settle(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)
