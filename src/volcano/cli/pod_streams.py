"""A container's input and output at this terminal: the client of exec and attach, over WebSocket."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
import termios
import tty
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, Final

import aiohttp
import msgspec

from volcano.cli.connection import ApiConnection
from volcano.cli.failures import Failed
from volcano.cli.resources import PODS
from volcano.machinery.clock import SystemClock
from volcano.machinery.http_transport import HttpTransport

PROTOCOLS: Final = ("v5.channel.k8s.io", "v4.channel.k8s.io")
STDIN, STDOUT, STDERR, ERROR, RESIZE = range(5)
CLOSE_STDIN: Final = bytes((255, STDIN))
"""Of the fifth version of the protocol; older servers never learn that the input has ended."""
READ_BYTES: Final = 64 * 1024


def stream(
    connection: ApiConnection,
    namespace: str,
    pod: str,
    verb: str,
    *,
    container: str = "",
    command: Sequence[str] = (),
    wants_input: bool,
    has_terminal: bool,
    first: bytes = b"",
    last: bytes = b"",
) -> int:
    """The exit code of the command, or of the container's stream; Failed where it cannot be had.

    `first` and `last` are sent before and after what is typed.
    """
    query = [("stdin", _flag(wants_input)), ("stdout", "true"), ("tty", _flag(has_terminal))]
    query += [] if has_terminal else [("stderr", "true")]
    query += [("container", container)] if container else []
    query += [("command", word) for word in command]
    path = PODS.path(namespace, pod, verb)
    try:
        return asyncio.run(_Stream(connection, wants_input, has_terminal, first, last).run(path, tuple(query)))
    except ConnectionError as error:
        raise Failed(str(error)) from error


def _flag(value: bool) -> str:
    return "true" if value else "false"


class _Stream:
    """One exec or attach."""

    def __init__(
        self, connection: ApiConnection, wants_input: bool, has_terminal: bool, first: bytes, last: bytes
    ) -> None:
        self._first, self._last = first, last
        self._endpoint = connection.endpoint
        self._wants_input, self._has_terminal = wants_input, has_terminal
        self._code = 0

    async def run(self, path: str, query: tuple[tuple[str, str], ...]) -> int:
        transport = HttpTransport(self._endpoint, SystemClock())
        raw = raw_terminal() if self._has_terminal and sys.stdin.isatty() else contextlib.nullcontext()
        try:
            async with transport.socket(path, query, PROTOCOLS) as socket:
                with raw:
                    await self._exchange(socket)
        finally:
            await transport.close()
        return self._code

    async def _exchange(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        sending = asyncio.ensure_future(self._send(socket)) if self._wants_input else None
        try:
            if self._has_terminal:
                await _send_size(socket)
                asyncio.get_running_loop().add_signal_handler(
                    signal.SIGWINCH, lambda: asyncio.ensure_future(_send_size(socket))
                )
            async for message in socket:
                if message.type not in (aiohttp.WSMsgType.BINARY, aiohttp.WSMsgType.TEXT) or not message.data:
                    continue
                content = message.data if isinstance(message.data, bytes) else message.data.encode()
                self._received(content[0], content[1:])
        finally:
            if sending is not None:
                sending.cancel()
                await asyncio.gather(sending, return_exceptions=True)

    def _received(self, channel: int, content: bytes) -> None:
        if channel in (STDOUT, STDERR):
            _write(1 if channel == STDOUT else 2, content)
        elif channel == ERROR:
            self._code = exit_code(content)

    async def _send(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        if self._first:
            await socket.send_bytes(bytes((STDIN,)) + self._first)
        async for chunk in _input():
            await socket.send_bytes(bytes((STDIN,)) + chunk)
        if self._last:
            await socket.send_bytes(bytes((STDIN,)) + self._last)
            return
        await socket.send_bytes(CLOSE_STDIN)


async def _input() -> AsyncIterator[bytes]:
    """What is typed or piped in."""
    loop, found = asyncio.get_running_loop(), asyncio.Queue[bytes](maxsize=0)
    handle = sys.stdin.fileno()
    try:
        loop.add_reader(handle, lambda: found.put_nowait(os.read(handle, READ_BYTES)))
    except (OSError, PermissionError):  # a file cannot be waited for: it is read at once
        while chunk := await loop.run_in_executor(None, os.read, handle, READ_BYTES):
            yield chunk
        return
    try:
        while chunk := await found.get():
            yield chunk
    finally:
        loop.remove_reader(handle)


async def _send_size(socket: aiohttp.ClientWebSocketResponse) -> None:
    columns, rows = shutil.get_terminal_size()
    message = msgspec.json.encode({"Width": columns, "Height": rows})
    with contextlib.suppress(ConnectionError):
        await socket.send_bytes(bytes((RESIZE,)) + message)


def exit_code(content: bytes) -> int:
    """The code in the Status that ends a stream; its message goes to stderr where there is no code."""
    try:
        status: dict[str, Any] = msgspec.json.decode(content)
    except (msgspec.MsgspecError, RecursionError):
        return 1
    if status.get("status") == "Success":
        return 0
    causes = (status.get("details") or {}).get("causes") or ()
    for cause in causes:
        if cause.get("reason") == "ExitCode" and str(cause.get("message", "")).isdecimal():
            return int(cause["message"])
    print(status.get("message") or "the command failed", file=sys.stderr)
    return 1


@contextlib.contextmanager
def raw_terminal() -> Iterator[None]:
    """Every key goes to the container, Ctrl-C too; the terminal is as before at the end."""
    handle = sys.stdin.fileno()
    before = termios.tcgetattr(handle)
    try:
        tty.setraw(handle)
        yield
    finally:
        termios.tcsetattr(handle, termios.TCSADRAIN, before)


def _write(handle: int, content: bytes) -> None:
    while content:
        content = content[os.write(handle, content) :]
