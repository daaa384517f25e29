"""Port forwarding over a WebSocket: two channels per port, data and errors, each opened with the port's number."""

from __future__ import annotations

import asyncio
import contextlib
import struct
from typing import Final

from aiohttp import WSMsgType, web

from volcano.embedded.agent.streams.spdy.forward import Dial

COPY_CHUNK_BYTES: Final = 32 * 1024
MAX_PORTS_PER_REQUEST: Final = 64


async def forward_ports(socket: web.WebSocketResponse, dial: Dial, ports: list[int]) -> None:
    """Forward until the client disconnects; each port is one connection to the pod."""
    ports = ports[:MAX_PORTS_PER_REQUEST]
    writers: dict[int, asyncio.StreamWriter] = {}
    pumps = []
    try:
        for number, port in enumerate(ports):
            opening = struct.pack("<H", port)
            for channel in (2 * number, 2 * number + 1):
                await socket.send_bytes(bytes((channel,)) + opening)
            try:
                reader, writer = await dial(port)
            except OSError as error:
                await socket.send_bytes(bytes((2 * number + 1,)) + f"cannot connect to port {port}: {error}".encode())
                continue
            writers[2 * number] = writer
            pumps.append(asyncio.ensure_future(_pump(reader, socket, 2 * number)))
        async for message in socket:
            if message.type != WSMsgType.BINARY or not message.data:
                continue
            found = writers.get(message.data[0])
            if found is not None:
                found.write(message.data[1:])
                with contextlib.suppress(ConnectionError):
                    await found.drain()
    finally:
        for pump in pumps:
            pump.cancel()
        for writer in writers.values():
            writer.close()


async def _pump(reader: asyncio.StreamReader, socket: web.WebSocketResponse, channel: int) -> None:
    with contextlib.suppress(ConnectionError):
        while chunk := await reader.read(COPY_CHUNK_BYTES):
            await socket.send_bytes(bytes((channel,)) + chunk)
