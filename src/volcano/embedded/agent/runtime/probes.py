"""Startup, liveness and readiness probes, and the handlers (exec, HTTP, TCP) that probes and hooks share.

A verdict is reported when it changes; what follows from it is pod_lifecycle's decision.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, Final, Literal

from volcano.api.kubelet import AgentContainer, Handler, Probe
from volcano.api.meta import JSON
from volcano.embedded.agent.lifecycle.pod_events import Probed
from volcano.machinery.clock import Clock

MAX_PROBE_RESPONSE_BYTES: Final = 10 * 1024
ProbeKind = Literal["startup", "liveness", "readiness"]
Execute = Callable[[list[str], timedelta], Awaitable[tuple[int, str]]]
"""Runs a command in the container within a time limit; returns its exit code and its output."""


class Threshold:
    """Turns single results into verdicts: a number of equal results in a row, and only when the verdict changes."""

    def __init__(self, probe: Probe, verdict: bool | None = None) -> None:
        self._needed = {True: max(1, probe.success_threshold), False: max(1, probe.failure_threshold)}
        self._verdict = verdict
        self._last: bool | None = None
        self._in_a_row = 0

    def take(self, ok: bool) -> bool | None:
        """The new verdict, or None when it did not change."""
        self._in_a_row = self._in_a_row + 1 if ok == self._last else 1
        self._last = ok
        if ok == self._verdict or self._in_a_row < self._needed[ok]:
            return None
        self._verdict = ok
        return ok


class Prober:
    """Runs the probes of one run of one container."""

    def __init__(
        self,
        clock: Clock,
        container: AgentContainer,
        attempt: int,
        *,
        address: str,
        execute: Execute,
        report: Callable[[Probed], None],
    ) -> None:
        self._clock, self._container, self._attempt = clock, container, attempt
        self._address, self._execute, self._report = address, execute, report

    @property
    def is_needed(self) -> bool:
        probed = self._container
        return any((probed.startup_probe, probed.liveness_probe, probed.readiness_probe))

    async def run(self) -> None:
        """Run until cancelled; liveness and readiness start after the startup probe has passed."""
        probed = self._container
        if probed.startup_probe is not None and not await self._until_started(probed.startup_probe):
            return
        watches = []
        if probed.liveness_probe is not None:
            watches.append(self._watch("liveness", probed.liveness_probe, verdict=True))
        if probed.readiness_probe is not None:
            watches.append(self._watch("readiness", probed.readiness_probe, verdict=None))
        await asyncio.gather(*watches)

    async def _until_started(self, probe: Probe) -> bool:
        threshold = Threshold(probe)
        await self._clock.sleep(timedelta(seconds=probe.initial_delay_seconds))
        while True:
            ok, message = await self._run_probe(probe)
            verdict = threshold.take(ok)
            if verdict is not None:
                self._report(Probed(self._container.name, self._attempt, "startup", verdict, message))
                return verdict
            await self._clock.sleep(timedelta(seconds=max(1, probe.period_seconds)))

    async def _watch(self, kind: ProbeKind, probe: Probe, *, verdict: bool | None) -> None:
        threshold = Threshold(probe, verdict)
        await self._clock.sleep(timedelta(seconds=probe.initial_delay_seconds))
        while True:
            ok, message = await self._run_probe(probe)
            changed = threshold.take(ok)
            if changed is not None:
                self._report(Probed(self._container.name, self._attempt, kind, changed, message))
            await self._clock.sleep(timedelta(seconds=max(1, probe.period_seconds)))

    async def _run_probe(self, probe: Probe) -> tuple[bool, str]:
        timeout = timedelta(seconds=max(1, probe.timeout_seconds))
        return await run_handler(probe, self._container, address=self._address, execute=self._execute, timeout=timeout)


async def run_handler(
    handler: Handler, container: AgentContainer, *, address: str, execute: Execute, timeout: timedelta
) -> tuple[bool, str]:
    """Run a handler once: whether it succeeded, and its output or error."""
    try:
        async with asyncio.timeout(timeout.total_seconds()):
            if handler.exec is not None:
                code, output = await execute([str(word) for word in handler.exec.get("command") or ()], timeout)
                return code == 0, output
            if handler.http_get is not None:
                return await _get_http(handler.http_get, container, address)
            if handler.tcp_socket is not None:
                host = str(handler.tcp_socket.get("host") or address)
                _, writer = await asyncio.open_connection(host, port_of(handler.tcp_socket, container))
                writer.close()
                return True, ""
    except TimeoutError:
        return False, f"no answer within {timeout.total_seconds():g} s"
    except (OSError, ValueError) as error:
        return False, str(error)
    return handler.grpc is None, "gRPC probes are not supported"


def port_of(target: JSON, container: AgentContainer) -> int:
    """A port by number, or by the name it has in the container's spec."""
    port: Any = target.get("port", 0)
    named = next((each.container_port for each in container.ports if each.name == str(port)), 0)
    number = named or (int(port) if str(port).isdecimal() else 0)
    if not 0 < number < 65536:
        raise ValueError(f"couldn't find port {port!r} of container {container.name}")
    return number


async def _get_http(target: JSON, container: AgentContainer, address: str) -> tuple[bool, str]:
    host, port = str(target.get("host") or address), port_of(target, container)
    secure = str(target.get("scheme", "HTTP")).upper() == "HTTPS"
    reader, writer = await asyncio.open_connection(host, port, ssl=_unverified_tls() if secure else None)
    try:
        headers = {"Host": f"{host}:{port}", "User-Agent": "kube-probe/1", "Accept": "*/*", "Connection": "close"}
        headers |= {str(each.get("name", "")): str(each.get("value", "")) for each in target.get("httpHeaders") or ()}
        lines = [
            f"GET {_path(target)} HTTP/1.1",
            *(f"{_line(name)}: {_line(value)}" for name, value in headers.items()),
        ]
        writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
        await writer.drain()
        answer = await reader.read(MAX_PROBE_RESPONSE_BYTES)
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
    words = answer.split(b"\r\n", 1)[0].split()
    code = int(words[1]) if len(words) > 1 and words[1].isdigit() else 0
    return 200 <= code < 400, f"HTTP probe failed with statuscode: {code}"


def _path(target: JSON) -> str:
    path = _line(str(target.get("path") or "/")).replace(" ", "%20")
    return path if path.startswith("/") else f"/{path}"


def _line(text: str) -> str:
    return text.replace("\r", "").replace("\n", "")


def _unverified_tls() -> ssl.SSLContext:
    """Probes accept any certificate, as a kubelet does."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
