"""A watch over a WebSocket: one text message for each event, until the watch ends or the client leaves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Final

from volcano.machinery.https_server import Receive, Send

NORMAL_CLOSE: Final = 1000  # RFC 6455


async def send_events(
    stream: AsyncIterator[bytes], receive: Receive, send: Send, *, abort: Callable[[], None], stall_seconds: float
) -> None:
    """Send the lines of the stream as messages; a client that takes nothing for too long is cut off."""
    sending = asyncio.ensure_future(_pump(stream, send, abort, stall_seconds))
    leaving = asyncio.ensure_future(_until_left(receive))
    try:
        await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (sending, leaving):
            task.cancel()
        await asyncio.gather(sending, leaving, return_exceptions=True)


async def _pump(stream: AsyncIterator[bytes], send: Send, abort: Callable[[], None], stall_seconds: float) -> None:
    try:
        async for chunk in stream:  # whole events, each with the newline that ends it, as kube-apiserver sends them
            for event in chunk.splitlines(keepends=True):
                async with asyncio.timeout(stall_seconds):
                    await send({"type": "websocket.send", "text": event.decode()})
        await send({"type": "websocket.close", "code": NORMAL_CLOSE})
    except TimeoutError:
        abort()  # closing would wait until the client has read the rest
    finally:
        close = getattr(stream, "aclose", None)
        if close is not None:
            await close()


async def _until_left(receive: Receive) -> None:
    """What the client sends means nothing, as in kube-apiserver."""
    while (await receive())["type"] != "websocket.disconnect":
        pass
