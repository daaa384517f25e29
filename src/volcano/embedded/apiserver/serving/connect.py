"""Connections that outlive a request: exec, attach and port-forward, relayed to the kubelet that runs the pod.

The kubelet gets the protocol that the client uses: a WebSocket with the same subprotocol, or SPDY (kubelet_streams).
Messages are relayed without being parsed.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any, Final
from urllib.parse import quote, urlencode

import msgspec

from volcano.api.errors import BadRequest, NotFound, ServiceUnavailable, error_from
from volcano.api.meta import JSON
from volcano.embedded.apiserver.access.authentication import Subject
from volcano.embedded.apiserver.kinds.kubelets import kubelet_of_pod, only_container
from volcano.embedded.apiserver.server import ApiServer
from volcano.embedded.apiserver.serving.kubelet_streams import KubeletStream, open_stream
from volcano.embedded.apiserver.store.contract import ObjectKey
from volcano.machinery.transport import Request

CONNECTABLE: Final = ("exec", "attach", "portforward")
MAX_MESSAGE_BYTES: Final = 4 * 2**20
MAX_QUEUED_MESSAGES: Final = 2
"""Of a kubelet, while the client does not read."""

Message = MutableMapping[str, Any]


class Upstream:
    """An open connection to the kubelet."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def relay(
        self, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
    ) -> None:
        """Relay in both directions until either side closes."""
        await send({"type": "websocket.accept", "subprotocol": self._connection.subprotocol})
        there = asyncio.ensure_future(self._to_kubelet(receive))
        back = asyncio.ensure_future(self._to_client(send))
        try:
            await asyncio.wait({there, back}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (there, back):
                task.cancel()
            await asyncio.gather(there, back, return_exceptions=True)
            await self._connection.close()

    async def _to_kubelet(self, receive: Callable[[], Awaitable[Message]]) -> None:
        while True:
            message = await receive()
            if message["type"] == "websocket.disconnect":
                return
            content = message.get("bytes")
            await self._connection.send(content if content is not None else message.get("text") or "")

    async def _to_client(self, send: Callable[[Message], Awaitable[None]]) -> None:
        async for content in self._connection:
            field = "bytes" if isinstance(content, bytes) else "text"
            await send({"type": "websocket.send", field: content})
        await send({"type": "websocket.close", "code": 1000})


class Connector:
    """Opens connections to kubelets; `context` holds their CA and the server's client certificate."""

    def __init__(self, server: ApiServer, context: ssl.SSLContext | None = None) -> None:
        self._server = server
        self._context = context

    async def open(
        self,
        request: Request,
        certificate: Subject | None,
        subprotocols: Sequence[str],
        proved: Callable[[str], None] | None = None,
    ) -> Upstream:
        """Calls `proved` with the name of the user as whom the client is authenticated."""
        from websockets.asyncio.client import connect
        from websockets.exceptions import InvalidStatus, WebSocketException

        url = self._url(request, certificate, proved).replace("http", "ws", 1)
        try:
            connection = await connect(
                url,
                subprotocols=[*subprotocols] or None,  # type: ignore[list-item]
                ssl=self._context if url.startswith("wss:") else None,
                max_size=MAX_MESSAGE_BYTES,
                compression=None,
                max_queue=MAX_QUEUED_MESSAGES,
                proxy=None,
                open_timeout=30,
            )
        except InvalidStatus as error:  # a kubelet sends its reason as plain text
            said = (error.response.body or b"").decode(errors="replace").strip()
            raise error_from(error.response.status_code, None, said) from error
        except (OSError, TimeoutError, WebSocketException) as error:
            raise ServiceUnavailable(f"error dialing backend: {error}") from error
        return Upstream(connection)

    async def open_stream(
        self,
        request: Request,
        certificate: Subject | None,
        versions: Sequence[str],
        proved: Callable[[str], None] | None = None,
    ) -> KubeletStream:
        """The same for a client that speaks SPDY, in one of these stream protocols."""
        return await open_stream(self._url(request, certificate, proved), versions, self._context)

    def _url(self, request: Request, certificate: Subject | None, proved: Callable[[str], None] | None) -> str:
        """Where the kubelet serves this; the caller must be allowed to create the subresource."""
        target = self._server.authorize_connection(request, certificate, proved)
        if target.qualified != "pods" or target.subresource not in CONNECTABLE:
            raise NotFound("the server could not find the requested resource")
        stored = self._server.backend.store.find(ObjectKey("pods", target.namespace, target.name))
        if stored is None:
            raise NotFound.of("pods", target.name)
        pod: JSON = msgspec.json.decode(stored.raw)
        host, port, scheme = kubelet_of_pod(self._server.backend.store, pod)
        parts = [target.subresource, target.namespace, target.name]
        query = list(request.query)
        if target.subresource != "portforward":
            container = request.param("container") or only_container(pod)
            if not container:
                raise BadRequest(f"a container name must be specified for pod {target.name}")
            parts.append(container)
            query = [_kubelet_parameter(pair) for pair in query if pair[0] != "container"]
        path = "/".join(quote(part, safe="") for part in parts)
        return f"{scheme}://{host}:{port}/{path}?{urlencode(query)}"


_RENAMED: Final = {"stdin": "input", "stdout": "output", "stderr": "error"}


def _kubelet_parameter(pair: tuple[str, str]) -> tuple[str, str]:
    """A parameter under the name that the kubelet has for it."""
    name, value = pair
    if name in _RENAMED:
        return _RENAMED[name], "1" if value.lower() in ("true", "1", "") else "0"
    if name == "tty":
        return name, "1" if value.lower() in ("true", "1", "") else "0"
    return pair
