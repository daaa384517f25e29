"""The HTTPS endpoint of a node: logs, exec, attach, portForward and use, as the API server requests them.

Only the API server is admitted: its client certificate is checked, on upgrades too. File paths are made from the
objects that the agent has, never from the URL. Which connections are kept is in node_connections.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec
from aiohttp import web

from volcano.api.kubelet import NODE_HEADER, AgentContainer, AgentPod
from volcano.api.times import parse_timestamp
from volcano.embedded.agent.containers.container_attempt import ContainerAttempt
from volcano.embedded.agent.lifecycle.pod_record import ContainerRunning, ContainerWaiting, PodRecord
from volcano.embedded.agent.streams.attach_session import AttachSession
from volcano.embedded.agent.streams.client_channels import TRUE_VALUES, client_channels, open_socket
from volcano.embedded.agent.streams.exec_session import ExecSession
from volcano.embedded.agent.streams.logs import LogQuery, read_log
from volcano.embedded.agent.streams.node_connections import NodeConnection, NodeLimits, accept_for
from volcano.embedded.agent.streams.node_usage import (
    ContainerUsage,
    PodUsage,
    UsageMeter,
    cadvisor_page,
    summary,
)
from volcano.embedded.agent.streams.port_forward import forward_ports
from volcano.embedded.agent.streams.spdy.forward import VERSIONS, SpdyForward, TcpStreams
from volcano.embedded.agent.streams.upgrade import choose_version, upgraded, wants_spdy
from volcano.machinery.acceptor import Acceptor
from volcano.machinery.certificate_renewal import FollowedPair
from volcano.machinery.clock import Clock
from volcano.machinery.https_server import bind

TRUSTED_GROUP: Final = "system:masters"
TRUSTED_NAME: Final = "kube-apiserver-kubelet-client"
MAX_HEAD_BYTES: Final = 64 * 1024
"""As much as the API server accepts: the command of an exec is in the URL."""


class KubeletTls(msgspec.Struct, frozen=True):
    """A PEM file with the node's certificate and key, and the CA of the permitted clients.

    `renew` replaces the file when its certificate is about to end; None where somebody else does.
    """

    certificate: Path
    client_ca: Path
    renew: Callable[[datetime], Any] | None = None


class KnownPod(Protocol):
    """A pod of this node with its record."""

    @property
    def pod(self) -> AgentPod: ...

    @property
    def record(self) -> PodRecord: ...


class ContainerHost(Protocol):
    """The part of the runtime that the endpoint uses."""

    def log_file(self, run: ContainerAttempt) -> Path: ...

    def processes_of(self, pod: AgentPod) -> Mapping[str, int]: ...

    def container_folder(self, run: ContainerAttempt) -> Path: ...

    async def dial(self, pod: AgentPod, address: str, port: int) -> TcpStreams: ...

    async def execute(self, run: ContainerAttempt, argv: list[str], *, standard: list[int], terminal: bool) -> int: ...


Find = Callable[[str, str], KnownPod | None]
AllPods = Callable[[], Iterable[KnownPod]]


class KubeletServer:
    """Serves one agent's nodes on one port."""

    def __init__(
        self,
        host: ContainerHost,
        clock: Clock,
        tls: KubeletTls | None,
        *,
        address: str = "127.0.0.1",
        limits: NodeLimits | None = None,
    ) -> None:
        self._host, self._clock, self._tls, self._address = host, clock, tls, address
        self._limits = limits or NodeLimits()
        self._find: Find = lambda _namespace, _name: None
        self._pods: AllPods = tuple
        self._meter = UsageMeter(clock)
        self._runner: web.AppRunner | None = None
        self._listener: socket.socket | None = None
        self._acceptor: Acceptor | None = None
        self._upkeep: asyncio.Future[None] | None = None

    async def open(self, find: Find, pods: AllPods = tuple) -> int:
        """Start serving; returns the port."""
        self._find, self._pods = find, pods
        app = web.Application(middlewares=[self._only_trusted])
        app.add_routes(
            [
                web.get("/containerLogs/{namespace}/{pod}/{container}", self._logs),
                web.route("*", "/exec/{namespace}/{pod}/{container}", self._exec),
                web.route("*", "/attach/{namespace}/{pod}/{container}", self._attach),
                web.route("*", "/portForward/{namespace}/{pod}", self._forward),
                web.route("*", "/portforward/{namespace}/{pod}", self._forward),
                web.get("/stats/summary", self._summary),
                web.get("/metrics/cadvisor", self._cadvisor),
                web.get("/healthz", self._health),
            ]
        )
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        assert self._runner.server is not None, "set up"
        context = _context(self._tls)
        if self._tls is not None and context is not None:
            followed = FollowedPair(context, self._tls.certificate, renew=self._tls.renew)
            self._upkeep = asyncio.ensure_future(followed.follow(self._clock))
        self._listener = bind(self._address, None)
        self._acceptor = accept_for(
            self._runner.server, self._listener, context, limits=self._limits, trusts=self._trusts,
            access_log=None, max_line_size=MAX_HEAD_BYTES, max_field_size=MAX_HEAD_BYTES,
        )  # fmt: skip
        return int(self._listener.getsockname()[1])

    async def close(self) -> None:
        if self._upkeep is not None:
            self._upkeep.cancel()
        if self._acceptor is not None:
            self._acceptor.close()
        if self._listener is not None:
            self._listener.close()
        if self._runner is not None:
            await self._runner.cleanup()

    @web.middleware
    async def _only_trusted(self, request: web.Request, handler: Any) -> web.StreamResponse:
        connection = request.protocol
        assert isinstance(connection, NodeConnection), "no other connections are accepted"
        connection.begin_request()
        try:
            if not self._trusts(_peer(request)):
                raise web.HTTPForbidden(text="only the API server is permitted\n")
            response: web.StreamResponse = await handler(request)
            return response
        finally:
            connection.end_request()

    def _trusts(self, certificate: dict[str, Any] | None) -> bool:
        return self._tls is None or is_trusted(certificate)

    async def _health(self, _request: web.Request) -> web.Response:
        return web.Response(text="ok")

    # -- use --------------------------------------------------------------------------------------------------
    async def _summary(self, request: web.Request) -> web.Response:
        node = request.headers.get(NODE_HEADER, "")
        body = summary(node, await self._usage(node), self._clock.now())
        return web.Response(body=msgspec.json.encode(body), content_type="application/json")

    async def _cadvisor(self, request: web.Request) -> web.Response:
        page = cadvisor_page(await self._usage(request.headers.get(NODE_HEADER, "")))
        return web.Response(body=page, content_type="text/plain")

    async def _usage(self, node: str) -> list[PodUsage]:
        """The use of a node's pods; of all pods of this agent when the request names no node."""
        known = [each.pod for each in self._pods() if each.record.has_live]
        processes = {
            f"{pod.uid}/{name}": pid
            for pod in known
            if node in ("", pod.spec.node_name)
            for name, pid in self._host.processes_of(pod).items()
        }
        measured = await self._meter.measure(processes)
        by_pod: dict[str, dict[str, ContainerUsage]] = {}
        for identity, usage in measured.items():
            uid, _, name = identity.partition("/")
            by_pod.setdefault(uid, {})[name] = usage
        return [
            PodUsage(pod.namespace, pod.name, pod.uid, pod.spec.node_name, by_pod[pod.uid])
            for pod in known
            if pod.uid in by_pod
        ]

    # -- logs -------------------------------------------------------------------------------------------------
    async def _logs(self, request: web.Request) -> web.StreamResponse:
        known, container = self._requested(request)
        query = self._log_query(request)
        attempt = _log_attempt(known.record, container.name, previous=query.previous)
        if attempt is None:
            raise web.HTTPBadRequest(text=_no_log(known, container.name, previous=query.previous))
        run = ContainerAttempt(known.pod, container.name, attempt)
        response = web.StreamResponse(headers={"content-type": "text/plain"})
        with contextlib.suppress(ConnectionError):  # the client has disconnected
            await response.prepare(request)
            async for piece in read_log(self._host.log_file(run), query, self._clock, lambda: self._is_live(run)):
                await response.write(piece)
            await response.write_eof()
        return response

    def _log_query(self, request: web.Request) -> LogQuery:
        parameters = request.query
        try:
            since = None
            if "sinceTime" in parameters:
                since = parse_timestamp(parameters["sinceTime"].strip())
            elif "sinceSeconds" in parameters:
                since = self._clock.now() - timedelta(seconds=int(parameters["sinceSeconds"]))
            return LogQuery(
                follow=parameters.get("follow", "") in TRUE_VALUES,
                previous=parameters.get("previous", "") in TRUE_VALUES,
                timestamps=parameters.get("timestamps", "") in TRUE_VALUES,
                since=since,
                tail=int(parameters["tailLines"]) if "tailLines" in parameters else None,
                limit_bytes=int(parameters["limitBytes"]) if "limitBytes" in parameters else None,
                stream=parameters.get("stream", "All"),
            )
        except (ValueError, OverflowError) as error:
            raise web.HTTPBadRequest(text=f"{error}\n") from error

    # -- streams ----------------------------------------------------------------------------------------------
    async def _exec(self, request: web.Request) -> web.StreamResponse:
        known, container = self._requested(request)
        run = _live_attempt(known, container.name)
        argv, terminal = request.query.getall("command", []), request.query.get("tty", "") in TRUE_VALUES
        if not argv:
            raise web.HTTPBadRequest(text="you must specify at least 1 command for the container\n")
        async with client_channels(request) as (channels, response):
            session = ExecSession(
                channels,
                stdin=request.query.get("input", "") in TRUE_VALUES,
                stderr=request.query.get("error", "") in TRUE_VALUES,
                terminal=terminal,
            )

            async def command(standard: list[int]) -> int:
                return await self._host.execute(run, list(argv), standard=standard, terminal=terminal)

            with contextlib.suppress(ConnectionError):
                await session.run(command)
        return response

    async def _attach(self, request: web.Request) -> web.StreamResponse:
        """Stream the container's output from now on and, if it has an input, the client's input to it."""
        known, container = self._requested(request)
        run = _live_attempt(known, container.name)
        async with client_channels(request) as (channels, response):
            session = AttachSession(channels, stdin=container.stdin and request.query.get("input", "") in TRUE_VALUES)
            with contextlib.suppress(ConnectionError):
                if not await session.run(self._host.container_folder(run)):
                    await session.follow_log(self._host.log_file(run), self._clock, lambda: self._is_live(run))
        return response

    async def _forward(self, request: web.Request) -> web.StreamResponse:
        known = self._find(request.match_info["namespace"], request.match_info["pod"])
        if known is None:
            raise web.HTTPNotFound(text=f"pod {request.match_info['pod']} is not on this node\n")

        async def dial(port: int) -> TcpStreams:
            now = self._find(known.pod.namespace, known.pod.name)
            if now is None or now.pod.uid != known.pod.uid or not now.record.has_live:
                raise OSError(f"pod {known.pod.name} does not run")  # another pod may have its address by now
            return await self._host.dial(now.pod, now.record.address, port)

        if wants_spdy(request):
            async with upgraded(request, choose_version(request, VERSIONS)) as connection:
                await SpdyForward(connection, dial).run()
            return web.Response()  # not sent: the connection belongs to SPDY
        try:
            ports = [int(port) for each in request.query.getall("ports", []) for port in each.split(",")]
        except ValueError as error:
            raise web.HTTPBadRequest(text=f"ports: {error}\n") from error
        if not ports or not all(0 < port < 65536 for port in ports):
            raise web.HTTPBadRequest(text='query parameter "ports" is required\n')
        channels = await open_socket(request)
        await forward_ports(channels, dial, ports)
        await channels.close()
        return channels

    def _is_live(self, run: ContainerAttempt) -> bool:
        """Whether this start of the container is still the current one and runs."""
        known = self._find(run.pod.namespace, run.pod.name)
        if known is None or known.pod.uid != run.pod.uid:
            return False
        container = known.record.container(run.name)
        return container is not None and container.attempt == run.number and container.is_live

    def _requested(self, request: web.Request) -> tuple[KnownPod, AgentContainer]:
        namespace, name = request.match_info["namespace"], request.match_info["pod"]
        known = self._find(namespace, name)
        if known is None:
            raise web.HTTPNotFound(text=f"pod {name} is not on this node\n")
        container = known.pod.container(request.match_info["container"])
        if container is None:
            raise web.HTTPNotFound(text=f"pod {name} has no container {request.match_info['container']}\n")
        return known, container


def is_trusted(peer: dict[str, Any] | None) -> bool:
    """Whether a verified client certificate is the API server's."""
    names = {key: value for part in (peer or {}).get("subject", ()) for key, value in part}
    groups = [value for part in (peer or {}).get("subject", ()) for key, value in part if key == "organizationName"]
    return TRUSTED_GROUP in groups or names.get("commonName") == TRUSTED_NAME


def _peer(request: web.Request) -> dict[str, Any] | None:
    peer: dict[str, Any] | None = request.transport.get_extra_info("peercert") if request.transport else None
    return peer


def _context(tls: KubeletTls | None) -> ssl.SSLContext | None:
    if tls is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(tls.certificate)
    context.load_verify_locations(tls.client_ca)
    context.verify_mode = ssl.CERT_REQUIRED
    return context


def _log_attempt(record: PodRecord, name: str, *, previous: bool) -> int | None:
    """The number of the start whose log is requested: the current or last one, or the one before it."""
    container = record.container(name)
    if container is None:
        return None
    begun = container.is_live or container.ended is not None
    latest = container.attempt if begun else container.attempt - 1
    wanted = latest - 1 if previous else latest
    return wanted if wanted >= 0 else None


def _no_log(known: KnownPod, name: str, *, previous: bool) -> str:
    pod = known.pod
    if previous:
        return f'previous terminated container "{name}" in pod "{pod.name}" not found\n'
    container = known.record.container(name)
    waiting = container.state if container is not None else None
    reason = waiting.reason if isinstance(waiting, ContainerWaiting) else "ContainerCreating"
    return f'container "{name}" in pod "{pod.name}" is waiting to start: {reason}\n'


def _live_attempt(known: KnownPod, name: str) -> ContainerAttempt:
    container = known.record.container(name)
    if container is None or not isinstance(container.state, ContainerRunning):
        raise web.HTTPBadRequest(text=f"container {name} of pod {known.pod.name} is not running\n")
    return ContainerAttempt(known.pod, name, container.attempt)
