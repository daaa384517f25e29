"""Certificates that end while a component runs: renewed in time, shown on new connections, open ones go on."""

from __future__ import annotations

import asyncio
import http.client
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme
from cryptography import x509

from tests.running_server import Client as PlainClient
from volcano.api.core import ConfigMap
from volcano.embedded.agent.streams.kubelet_server import KubeletServer, KubeletTls
from volcano.embedded.apiserver.server import ApiServer
from volcano.embedded.apiserver.serving.serve import serve
from volcano.embedded.apiserver.store.memory_store import MemoryStore
from volcano.machinery.certificate_renewal import CHECK_INTERVAL, FollowedPair
from volcano.machinery.certificates import CERTIFICATE_YEARS, Authority, server_context
from volcano.machinery.client import Client
from volcano.machinery.clock import SystemClock
from volcano.machinery.http_transport import HttpTransport
from volcano.machinery.kubeconfig import load_endpoint

LIFETIME = timedelta(days=365 * CERTIFICATE_YEARS)
SHORTLY_BEFORE_THE_END = LIFETIME - timedelta(hours=1)
DEADLINE = 30


class ShiftedClock(SystemClock):
    """The machine's clock, so that TLS agrees with it, shifted into the past: what it makes ends within the hour.

    A shift wakes those who sleep, as time that has passed.
    """

    def __init__(self, behind: timedelta) -> None:
        super().__init__()
        self._behind = behind
        self._shifted = asyncio.Event()

    def now(self) -> datetime:
        return super().now() - self._behind

    async def sleep(self, pause: timedelta) -> None:
        until = self.now() + pause
        while (left := until - self.now()) > timedelta():
            shifted = asyncio.ensure_future(self._shifted.wait())
            await asyncio.wait([shifted], timeout=left.total_seconds())
            shifted.cancel()

    def pass_by(self, time: timedelta) -> None:
        self._behind -= time
        self._shifted.set()
        self._shifted = asyncio.Event()


def shown(kubeconfig: Path) -> x509.Certificate:
    """The certificate that a new connection is shown; the handshake also proves the client's."""
    connection = PlainClient(kubeconfig).connect()
    connection.connect()
    try:
        return x509.load_der_x509_certificate(connection.sock.getpeercert(binary_form=True))  # type: ignore[union-attr]
    finally:
        connection.close()


async def until(condition) -> None:  # type: ignore[no-untyped-def]
    async with asyncio.timeout(DEADLINE):
        while not await asyncio.to_thread(condition):
            await asyncio.sleep(0.02)


async def test_the_api_server_its_administrator_and_clients_outlive_their_certificates(tmp_path: Path):
    clock = ShiftedClock(behind=SHORTLY_BEFORE_THE_END)
    server = ApiServer(MemoryStore(), clock=clock)
    await server.start()
    path = tmp_path / "kubeconfig"
    async with serve(server, pki=tmp_path / "pki", clock=clock, port=None, kubeconfig_path=path):
        client = Client(HttpTransport(load_endpoint(path), clock), agent="test")
        before, first = await asyncio.to_thread(shown, path), path.read_bytes()
        assert before.not_valid_after_utc < datetime.now(UTC) + timedelta(hours=1)
        open_one = PlainClient(path).connect()
        await asyncio.to_thread(get, open_one)
        async with asyncio.timeout(DEADLINE):
            namespaces = await client.list(ConfigMap)
        assert namespaces.items is not None

        clock.pass_by(SHORTLY_BEFORE_THE_END)

        await until(lambda: path.read_bytes() != first)
        await until(lambda: shown(path).serial_number != before.serial_number)
        after = await asyncio.to_thread(shown, path)
        assert after.not_valid_after_utc > datetime.now(UTC) + timedelta(days=360)
        assert await asyncio.to_thread(get, open_one) == 200  # a connection from before goes on
        open_one.close()
        clock.pass_by(CHECK_INTERVAL)
        await client.list(ConfigMap)  # the running client has read the new kubeconfig
        followed = client._transport._followed  # type: ignore[attr-defined]  # noqa: SLF001
        assert followed.endpoint.client_certificate == load_endpoint(path).client_certificate
        await client.close()
    await server.close()


def get(connection: http.client.HTTPSConnection) -> int:
    connection.request("GET", "/api/v1/namespaces/default")
    answer = connection.getresponse()
    answer.read()
    return answer.status


async def test_a_kubelet_shows_its_renewed_certificate(tmp_path: Path):
    clock = ShiftedClock(behind=SHORTLY_BEFORE_THE_END)
    authority = Authority(tmp_path, clock.now())

    def renew(now: datetime) -> Path:
        return authority.node_pair(("localhost", "127.0.0.1"), now)

    kubelet = KubeletServer(None, clock, KubeletTls(renew(clock.now()), authority.certificate_path, renew))  # type: ignore[arg-type]
    port = await kubelet.open(lambda _namespace, _name: None)
    client = ssl.create_default_context(cafile=str(authority.certificate_path))
    masters = authority.client_file(
        "kube-apiserver-kubelet-client", ("system:masters",), clock.now(), file_name="kubelet-client"
    )
    client.load_cert_chain(masters)

    def serial() -> int:
        connection = http.client.HTTPSConnection("localhost", port, context=client, timeout=DEADLINE)
        connection.request("GET", "/healthz")
        assert connection.getresponse().status == 200
        found = connection.sock.getpeercert(binary_form=True)  # type: ignore[union-attr]
        connection.close()
        return x509.load_der_x509_certificate(found).serial_number

    before = await asyncio.to_thread(serial)

    clock.pass_by(SHORTLY_BEFORE_THE_END)

    await until(lambda: serial() != before)
    await kubelet.close()


def test_files_that_somebody_exchanges_are_loaded_and_broken_ones_are_not(tmp_path: Path):
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    authority = trustme.CA()

    def write() -> None:
        pair = authority.issue_cert("localhost")
        certificate.write_bytes(pair.cert_chain_pems[0].bytes())
        key.write_bytes(pair.private_key_pem.bytes())

    write()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    followed = FollowedPair(context, certificate, key)
    now = datetime.now(UTC)

    assert not followed.refresh(now)
    key.write_text("not a key")
    assert not followed.refresh(now)
    write()
    assert followed.refresh(now)
    certificate.unlink()
    assert not followed.refresh(now)


@pytest.mark.parametrize("name", ["server", "dashboard"])
def test_two_servers_with_one_authority_do_not_exchange_each_others_certificates(tmp_path: Path, name: str):
    now = datetime.now(UTC)
    authority = Authority(tmp_path, now)
    for file_name, host in (("server", "a.example"), ("dashboard", "b.example")):
        server_context(authority, [host], now, file_name=file_name)
    before = (tmp_path / f"{name}.pem").read_bytes()

    for file_name, host in (("server", "a.example"), ("dashboard", "b.example")):
        server_context(authority, [host], now, file_name=file_name)

    assert (tmp_path / f"{name}.pem").read_bytes() == before
