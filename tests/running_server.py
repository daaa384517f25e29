"""An embedded API server on a free port of this machine, in a thread of its own, and a small plain client for it."""

from __future__ import annotations

import asyncio
import base64
import http.client
import ssl
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import msgspec
import yaml

from volcano.embedded.apiserver.server import ApiServer
from volcano.embedded.apiserver.serving.asgi import HttpLimits
from volcano.embedded.apiserver.serving.serve import Serving, serve
from volcano.embedded.apiserver.store.contract import Store
from volcano.embedded.apiserver.store.memory_store import MemoryStore
from volcano.machinery.clock import SystemClock
from volcano.machinery.transport import User


@dataclass
class Running:
    """A server that answers."""

    server: ApiServer
    serving: Serving
    kubeconfig: Path
    loop: asyncio.AbstractEventLoop

    def run(self, coroutine: Any) -> Any:
        """Do something on the server's own event loop."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(30)

    def kubeconfig_for(self, user: str, *groups: str) -> Path:
        """A kubeconfig with a certificate for another user."""
        pair = self.serving.authority.issue(user, groups, SystemClock().now())
        path = self.kubeconfig.with_name(f"kubeconfig-{user.replace(':', '-')}")
        path.write_bytes(self.serving.kubeconfig(pair, user=user))
        return path


@contextmanager
def running_server(
    store: Store | None = None,
    tokens: Mapping[str, User] | None = None,
    limits: HttpLimits | None = None,
    **options: Any,
) -> Iterator[Running]:
    ready: threading.Event = threading.Event()
    box: dict[str, Any] = {}

    async def main(folder: Path) -> None:
        stop = asyncio.Event()
        clock = SystemClock()
        server = ApiServer(store or MemoryStore(), clock=clock, tokens=tokens, **options)
        await server.start()
        kubeconfig = folder / "kubeconfig"
        async with serve(
            server, pki=folder / "pki", clock=clock, port=None, kubeconfig_path=kubeconfig, limits=limits
        ) as serving:
            box.update(running=Running(server, serving, kubeconfig, asyncio.get_running_loop()), stop=stop)
            ready.set()
            await stop.wait()
        await server.close()

    def target(folder: Path) -> None:
        try:
            asyncio.run(main(folder))
        except BaseException as error:
            box["error"] = error
            raise
        finally:
            ready.set()

    with tempfile.TemporaryDirectory() as folder:
        thread = threading.Thread(target=target, args=(Path(folder),), daemon=True)
        thread.start()
        assert ready.wait(30)
        if "running" not in box:
            raise box.get("error", RuntimeError("the server did not start"))
        try:
            yield box["running"]
        finally:
            box["running"].loop.call_soon_threadsafe(box["stop"].set)
            thread.join(30)


@dataclass
class Answer:
    status: int
    headers: Mapping[str, str]
    raw: bytes

    @property
    def body(self) -> Any:
        return msgspec.json.decode(self.raw)

    def __repr__(self) -> str:
        return f"Answer({self.status}, {self.raw[:2000]!r})"


class Client:
    """Requests as they are: no retries, no cleverness. Works with any API server a kubeconfig points to."""

    def __init__(self, kubeconfig: Path, *, token: str = "", anonymous: bool = False) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        user = config["users"][0]["user"]
        self.kubeconfig = kubeconfig
        self.server = urlsplit(cluster["server"])
        self.context = ssl.create_default_context(cadata=_decoded(cluster, "certificate-authority").decode())
        self.token = token
        if not token and not anonymous and ("client-certificate-data" in user or "client-certificate" in user):
            with tempfile.NamedTemporaryFile() as file:
                file.write(_decoded(user, "client-certificate") + b"\n" + _decoded(user, "client-key"))
                file.flush()
                self.context.load_cert_chain(file.name)
        elif not token and not anonymous:
            self.token = user.get("token", "")

    def connect(self, timeout: float = 30) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(
            self.server.hostname, self.server.port, context=self.context, timeout=timeout
        )

    def __call__(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> Answer:
        connection = self.connect()
        try:
            response = self._send(connection, method, path, body, query, headers, content_type)
            return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            connection.close()

    @contextmanager
    def watching(
        self, path: str, *, query: Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None
    ) -> Iterator[Iterator[Any]]:
        """The events of a watch, one by one; waiting longer than ten seconds for one is an error."""
        connection = self.connect(timeout=10)
        try:
            response = self._send(
                connection, "GET", path, None, {"watch": "true", **(query or {})}, headers, "application/json"
            )
            if response.status != 200:
                raise AssertionError(Answer(response.status, {}, response.read()))
            yield (msgspec.json.decode(line) for line in iter(response.readline, b""))
        finally:
            connection.close()

    def _send(
        self, connection: Any, method: str, path: str, body: Any, query: Any, headers: Any, content_type: str
    ) -> http.client.HTTPResponse:
        raw = body if isinstance(body, bytes) or body is None else msgspec.json.encode(body)
        url = f"{path}?{urlencode(query, doseq=True)}" if query else path
        all_headers = {"accept": "application/json", **(headers or {})}
        if raw is not None:
            all_headers["content-type"] = content_type
        if self.token:
            all_headers["authorization"] = f"Bearer {self.token}"
        connection.request(method, url, body=raw, headers=all_headers)
        response: http.client.HTTPResponse = connection.getresponse()
        return response

    # the usual things, by their usual names
    def create(self, path: str, body: Any, **options: Any) -> Answer:
        return self("POST", path, body, **options)

    def get(self, path: str, **query: Any) -> Answer:
        return self("GET", path, query=query)

    def merge(self, path: str, body: Any, **options: Any) -> Answer:
        return self("PATCH", path, body, content_type="application/merge-patch+json", **options)

    def delete(self, path: str, body: Any = None, **query: Any) -> Answer:
        return self("DELETE", path, body, query=query)


def _decoded(values: Mapping[str, str], name: str) -> bytes:
    if f"{name}-data" in values:
        return base64.b64decode(values[f"{name}-data"])
    return Path(values[name]).read_bytes()
