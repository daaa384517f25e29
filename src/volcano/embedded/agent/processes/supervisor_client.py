"""The agent's end of the supervisor's socket: finds or starts the supervisor, sends requests, receives exits."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import volcano
from volcano.embedded.agent.processes.supervisor_protocol import (
    MAX_DESCRIPTORS_PER_MESSAGE,
    SOCKET,
    VERSION,
    Order,
    ProcessRecord,
    decode,
    encode,
)
from volcano.machinery.clock import Clock

log = logging.getLogger(__name__)
CONNECT_TIMEOUT: Final = timedelta(seconds=15)
CONNECT_RETRY_DELAY: Final = timedelta(milliseconds=10)
SEND_RETRY_DELAY: Final = timedelta(milliseconds=1)
RECEIVE_CHUNK_BYTES: Final = 262144


class SupervisorError(Exception):
    """The supervisor refused a request, failed, or is not connected."""


class NoSpace(SupervisorError):
    """The disk is full: nothing was started, and the same request may succeed later."""


class SupervisorClient:
    """One connection. When it breaks, every pending request fails and `on_lost` is called once."""

    def __init__(
        self, directory: Path, clock: Clock, *, on_exit: Callable[[ProcessRecord], None], on_lost: Callable[[], None]
    ) -> None:
        self._directory, self._clock = directory, clock
        self._on_exit, self._on_lost = on_exit, on_lost
        self._socket: socket.socket | None = None
        self._requests: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._number = 0
        self._is_connected = False
        self._received = bytearray()
        self._descriptors: list[int] = []
        self._sending = asyncio.Lock()
        self.pid = 0
        self.tier = "none"

    async def connect(self) -> None:
        """Connect to the running supervisor, or start one. One that is just ending is not waited for."""
        process: subprocess.Popen[bytes] | None = None
        deadline = self._clock.monotonic() + CONNECT_TIMEOUT.total_seconds()
        while (hello := await self._greet()) is None:
            if process is None or process.poll() is not None:
                process = self._spawn()
            if self._clock.monotonic() > deadline:
                raise SupervisorError(f"no supervisor answers at {self._directory}; see supervisor.log there")
            await self._clock.sleep(CONNECT_RETRY_DELAY)
        self._is_connected = True
        if hello["version"] != VERSION:
            raise SupervisorError(
                f"the supervisor of {self._directory} has protocol version {hello['version']}, not {VERSION}"
            )
        self.pid, self.tier = hello["pid"], hello["tier"]

    async def _greet(self) -> dict[str, Any] | None:
        """Connect once; None without a supervisor, or when it ends before it replies."""
        self._socket = self._try_connect()
        if self._socket is None:
            return None
        asyncio.get_running_loop().add_reader(self._socket.fileno(), self._readable)
        try:
            return await self.ask("hello")
        except SupervisorError:
            self._disconnect()
            return None

    async def close(self) -> None:
        if self._socket is not None:
            self._disconnect()

    async def ask(self, do: str, *, descriptors: Sequence[int] = (), **fields: Any) -> dict[str, Any]:
        """Send a request and return its reply; SupervisorError when it is refused."""
        if self._socket is None:
            raise SupervisorError("the supervisor is not connected")
        self._number += 1
        number = self._number
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._requests[number] = future
        try:
            message = {"do": do, "number": number, "descriptors": len(descriptors), **fields}
            await self._send(encode(message), descriptors)
            reply = await future
        finally:
            self._requests.pop(number, None)
        if "error" in reply:
            raise (NoSpace if reply.get("errno") == errno.ENOSPC else SupervisorError)(reply["error"])
        return reply

    async def start(self, order: Order) -> ProcessRecord:
        record: ProcessRecord = (await self.ask("start", order=order))["record"]
        return record

    async def socket_in(self, pod: str, family: int) -> socket.socket:
        """A socket in a pod's own network; SupervisorError when the pod has none."""
        (descriptor,) = (await self.ask("socket", pod=pod, family=family))["descriptors"]
        made = socket.socket(fileno=descriptor)
        made.setblocking(False)
        return made

    async def _send(self, message: bytes, descriptors: Sequence[int]) -> None:
        async with self._sending:
            peer = self._socket
            if peer is None:
                raise SupervisorError("the supervisor is not connected")
            sent = 0
            try:
                while descriptors and sent == 0:
                    sent = self._send_descriptors(peer, message, descriptors)
                    if sent == 0:
                        await self._clock.sleep(SEND_RETRY_DELAY)
                await asyncio.get_running_loop().sock_sendall(peer, message[sent:])
            except OSError as error:
                raise SupervisorError(f"the supervisor disconnected: {error}") from error

    @staticmethod
    def _send_descriptors(peer: socket.socket, message: bytes, descriptors: Sequence[int]) -> int:
        try:
            return socket.send_fds(peer, [message], list(descriptors))
        except BlockingIOError:
            return 0

    def _readable(self) -> None:
        assert self._socket is not None, "only called while connected"
        try:
            received, descriptors, _, _ = socket.recv_fds(
                self._socket, RECEIVE_CHUNK_BYTES, MAX_DESCRIPTORS_PER_MESSAGE
            )
            self._descriptors += descriptors
        except BlockingIOError:
            return
        except OSError:
            received = b""
        if not received:
            was_connected = self._is_connected
            self._disconnect()
            if was_connected:
                self._on_lost()
            return
        self._received += received
        *lines, rest = bytes(self._received).split(b"\n")
        self._received = bytearray(rest)
        for line in lines:
            self._take(decode(line))

    def _take(self, message: dict[str, Any]) -> None:
        if message.get("event") == "exited":
            self._on_exit(message["record"])
            return
        count = message.get("descriptors", 0)
        received, self._descriptors = self._descriptors[:count], self._descriptors[count:]
        future = self._requests.get(message.get("number", 0))
        if future is not None and not future.done():
            message["descriptors"] = received
            future.set_result(message)
            return
        for descriptor in received:  # the request was cancelled
            os.close(descriptor)

    def _disconnect(self) -> None:
        peer, self._socket, self._is_connected = self._socket, None, False
        if peer is not None:
            asyncio.get_running_loop().remove_reader(peer.fileno())
            peer.close()
        self._received.clear()
        for descriptor in self._descriptors:
            os.close(descriptor)
        self._descriptors.clear()
        for future in self._requests.values():
            if not future.done():
                future.set_exception(SupervisorError("the supervisor disconnected"))

    def _try_connect(self) -> socket.socket | None:
        peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            directory = os.open(self._directory, os.O_PATH | os.O_DIRECTORY)
        except OSError:
            peer.close()
            return None
        try:
            peer.connect(f"/proc/self/fd/{directory}/{SOCKET}")
        except OSError:
            peer.close()
            return None
        finally:
            os.close(directory)
        peer.setblocking(False)
        return peer

    def _spawn(self) -> subprocess.Popen[bytes]:
        """Start it detached: in its own session, without our descriptors, with output to a file."""
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        source = str(Path(volcano.__file__).parent.parent)
        environment = {"PATH": os.environ.get("PATH", os.defpath), "PYTHONPATH": source, "PYTHONDONTWRITEBYTECODE": "1"}
        with open(self._directory / "supervisor.log", "ab") as output:
            return subprocess.Popen(
                [sys.executable, "-S", "-m", "volcano.embedded.agent.processes.supervisor", str(self._directory)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=environment,
                cwd="/",
                start_new_session=True,
            )


@contextlib.contextmanager
def closing(descriptors: Sequence[int]) -> Any:
    """Descriptors that are closed whatever happens."""
    try:
        yield
    finally:
        for descriptor in descriptors:
            with contextlib.suppress(OSError):
                os.close(descriptor)
