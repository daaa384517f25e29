"""HTTP for the dashboard: ASGI requests with bounded bodies in, answers with headers that keep browsers safe out."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from http.cookies import CookieError, SimpleCookie
from typing import Final
from urllib.parse import parse_qsl, unquote

import msgspec

from volcano.machinery.https_server import Receive, Scope, Send
from volcano.machinery.transport import Response

log = logging.getLogger(__name__)

MAX_BODY_BYTES: Final = 1024 * 1024
MAX_QUERY_CHARACTERS: Final = 4_096
MAX_PARAMETERS: Final = 200
MAX_PATH_CHARACTERS: Final = 1_024
BODY_SECONDS: Final = 20.0
API_PREFIX: Final = "/api/v1"
HTML: Final = {"content-type": "text/html; charset=utf-8"}
SAFE_HEADERS: Final = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
        "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}
"""On every answer; scripts and styles come from this server's own files only, and none stands inside a page."""


class WebRequest(msgspec.Struct, frozen=True):
    """A request as pages read it. `query` and `form` have the last of repeated values."""

    method: str
    path: str
    query: dict[str, str] = {}
    form: dict[str, str] = {}
    headers: dict[str, str] = {}
    address: str = ""
    is_tls: bool = False

    @property
    def wants_part(self) -> bool:
        """Whether a script of ours asks for the main part of the page only."""
        return self.headers.get("x-part") == "main"

    def cookie(self, name: str) -> str:
        cookies: SimpleCookie = SimpleCookie()
        try:
            cookies.load(self.headers.get("cookie", ""))
        except CookieError:
            return ""
        return cookies[name].value if name in cookies else ""


class BadWebRequest(Exception):
    """Refused before a page is asked; the message is for people."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class WebProblem(msgspec.Struct, frozen=True):
    """Why there is no answer, for programs."""

    error: str
    code: int


Answer = Callable[[WebRequest], Awaitable[Response]]


class WebApplication:
    """The ASGI application around one function."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        try:
            response = await self._answer(await _request(scope, receive))
        except BadWebRequest as error:
            response = _refusal(scope["path"], error.status, str(error))
        except Exception:
            log.exception("%s %s", scope["method"], scope["path"])
            response = _refusal(scope["path"], 500, "the page could not be made; the log says why")
        headers = {**SAFE_HEADERS, **response.headers}
        if response.stream is None:
            headers["content-length"] = str(len(response.body))
        pairs = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": response.status, "headers": pairs})
        if response.stream is None:
            body = b"" if scope["method"] == "HEAD" else response.body
            await send({"type": "http.response.body", "body": body})
        else:
            await _stream(response.stream, receive, send)


def problem_in_json(status: int, message: str) -> Response:
    return Response(status, {"content-type": "application/json"}, msgspec.json.encode(WebProblem(message, status)))


def _refusal(path: str, status: int, message: str) -> Response:
    return problem_in_json(status, message) if path.startswith(f"{API_PREFIX}/") else plain(status, message)


def plain(status: int, text: str) -> Response:
    return Response(status, {"content-type": "text/plain; charset=utf-8"}, f"{text}\n".encode())


def redirect(place: str, headers: dict[str, str] | None = None) -> Response:
    return Response(303, {"location": place, **(headers or {})})


async def _request(scope: Scope, receive: Receive) -> WebRequest:
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    raw = scope.get("query_string", b"").decode("latin-1")
    if len(raw) > MAX_QUERY_CHARACTERS or len(scope["path"]) > MAX_PATH_CHARACTERS:
        raise BadWebRequest(414, "the address is too long")
    body = await _body(headers, receive) if scope["method"] == "POST" else b""
    client = scope.get("client")
    return WebRequest(
        scope["method"],
        unquote(scope["path"]) if "%" in scope["path"] else scope["path"],
        _pairs(raw),
        _pairs(body.decode(errors="replace")),
        headers,
        client[0] if client else "",
        scope.get("scheme") == "https",
    )


def _pairs(text: str) -> dict[str, str]:
    try:
        return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=MAX_PARAMETERS))
    except ValueError as error:
        raise BadWebRequest(400, f"more than {MAX_PARAMETERS} parameters") from error


async def _body(headers: dict[str, str], receive: Receive) -> bytes:
    if headers.get("content-type", "").partition(";")[0].strip() != "application/x-www-form-urlencoded":
        raise BadWebRequest(415, "a form is expected")
    pieces, size = [], 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise BadWebRequest(499, "the client left")
                pieces.append(message.get("body", b""))
                size += len(pieces[-1])
                if size > MAX_BODY_BYTES:
                    raise BadWebRequest(413, f"more than {MAX_BODY_BYTES} bytes")
                if not message.get("more_body"):
                    return b"".join(pieces)
    except TimeoutError as error:
        raise BadWebRequest(408, "the form did not arrive in time") from error


async def _stream(chunks: AsyncIterator[bytes], receive: Receive, send: Send) -> None:
    """Until the chunks end or the client leaves."""

    async def give() -> None:
        async for chunk in chunks:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def left() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    tasks = {asyncio.ensure_future(give()), asyncio.ensure_future(left())}
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await task
        close = getattr(chunks, "aclose", None)
        if close is not None:
            with contextlib.suppress(Exception):
                await close()
