"""HTTP and TCP probes of pods, for the NetworkProbe steps of Plans."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

import aiohttp

from volcano.machinery.plan import NetworkProbe, ProbeAnswer

MAX_BODY_BYTES: Final = 64 * 1024


async def ask(probe: NetworkProbe) -> ProbeAnswer:
    """Never raises: a failure is an answer."""
    try:
        async with asyncio.timeout(probe.timeout.total_seconds()):
            message = await (_http(probe) if probe.ask == "http" else _tcp(probe))
    except (OSError, TimeoutError, aiohttp.ClientError, ValueError) as error:
        return ProbeAnswer(probe.name, False, f"{type(error).__name__}: {error}")
    return ProbeAnswer(probe.name, not message, message)


async def _http(probe: NetworkProbe) -> str:
    host = f"[{probe.host}]" if ":" in probe.host else probe.host
    path = probe.path if probe.path.startswith("/") else f"/{probe.path}"
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://{host}:{probe.port}{path}", headers=dict(probe.headers), allow_redirects=False) as answer,
    ):
        await answer.content.read(MAX_BODY_BYTES)
        return "" if 200 <= answer.status < 400 else f"HTTP probe failed with statuscode: {answer.status}"


async def _tcp(probe: NetworkProbe) -> str:
    _, writer = await asyncio.open_connection(probe.host, probe.port)
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return ""
