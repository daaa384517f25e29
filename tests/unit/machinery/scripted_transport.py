"""A transport whose answers a test writes beforehand, and streams that it feeds; for the client on virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

import msgspec

from volcano.api.errors import ApiError
from volcano.machinery.clock import VirtualClock
from volcano.machinery.transport import Request, Response

Answer = Response | Exception | dict[str, Any] | Callable[[Request], Any]


class Stream:
    """A watch that the test feeds."""

    def __init__(self) -> None:
        self._lines: asyncio.Queue[bytes | Exception | None] = asyncio.Queue()

    def send(self, kind: str, body: dict[str, Any]) -> None:
        self.send_line(msgspec.json.encode({"type": kind, "object": body}))

    def send_line(self, line: bytes) -> None:
        self._lines.put_nowait(line + b"\n")

    def end(self) -> None:
        self._lines.put_nowait(None)

    def fail(self, error: Exception) -> None:
        self._lines.put_nowait(error)

    async def chunks(self) -> AsyncIterator[bytes]:
        while (line := await self._lines.get()) is not None:
            if isinstance(line, Exception):
                raise line
            yield line


class ScriptedTransport:
    """Answers each method and path from its own list; the last answer is given for ever. Watches are `WATCH`."""

    def __init__(self) -> None:
        self._answers: dict[tuple[str, str], list[Answer | Stream]] = {}
        self.requests: list[Request] = []
        self.times: list[float] = []

    def answers(self, method: str, path: str, *answers: Answer | Stream) -> None:
        self._answers[method, path] = list(answers)

    def sent(self, method: str = "", path: str = "") -> list[Request]:
        """The requests so far, in order, of a method (WATCH is one) and a path."""
        return [request for request in self.requests if method in ("", _method(request)) and path in ("", request.path)]

    def bodies(self, method: str, path: str = "") -> list[Any]:
        return [msgspec.json.decode(request.body) for request in self.sent(method, path) if request.body]

    async def send(self, request: Request) -> Response:
        self.requests.append(request)
        self.times.append(asyncio.get_running_loop().time())
        await asyncio.sleep(0)
        prepared = self._answers.get((_method(request), request.path))
        assert prepared, f"no answer is scripted for {_method(request)} {request.path}"
        answer = prepared.pop(0) if len(prepared) > 1 else prepared[0]
        if callable(answer):
            answer = answer(request)
            if asyncio.iscoroutine(answer):
                answer = await answer
        if isinstance(answer, ApiError):
            return Response(answer.status_code, {}, msgspec.json.encode(answer.status()))
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, Stream):
            return Response(stream=answer.chunks())
        return answer if isinstance(answer, Response) else Response(body=msgspec.json.encode(answer))

    async def close(self) -> None:
        return None


async def elapse(seconds: float) -> None:
    """Let virtual time pass."""
    await VirtualClock().sleep(timedelta(seconds=seconds))


def _method(request: Request) -> str:
    return "WATCH" if request.param("watch") == "true" else request.method


def a_map(name: str, version: int = 1, uid: str = "", **data: str) -> dict[str, Any]:
    """A ConfigMap as a server answers it."""
    metadata = {"name": name, "namespace": "ns", "uid": uid or f"uid-{name}", "resourceVersion": str(version)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def a_list(*items: dict[str, Any], version: int = 10, next_page: str = "") -> dict[str, Any]:
    return {"metadata": {"resourceVersion": str(version), "continue": next_page}, "items": list(items)}
