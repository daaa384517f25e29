"""Certificates: own ones, and files that are replaced while they are in use."""

import asyncio
import base64
import contextlib
import socket
import ssl

import pytest
import trustme
from webhook_site import DEADLINE, SOON, issued, registered, site, trusting

from volcano.admission.webhook.serving_certificates import CertificateError, CertificateFiles, Certificates, make_files
from volcano.machinery.clock import SystemClock


def peer(port, files):
    """The serial number of the certificate that a new connection is shown."""
    from cryptography import x509

    plain = socket.create_connection(("127.0.0.1", port), timeout=DEADLINE)
    with plain, trusting(files).wrap_socket(plain, server_hostname="localhost") as secure:
        return x509.load_der_x509_certificate(secure.getpeercert(binary_form=True)).serial_number


async def test_exchanged_certificates_are_taken_up_without_a_restart(tmp_path):
    async with site(tmp_path, paths=("/jobs/mutate",), file_poll_interval=SOON) as webhook:
        before = await asyncio.to_thread(peer, webhook.service.port, webhook.files)
        issued(tmp_path / "tls", trustme.CA())

        async with asyncio.timeout(DEADLINE):
            while True:
                with contextlib.suppress(ssl.SSLError):
                    if await asyncio.to_thread(peer, webhook.service.port, webhook.files) != before:
                        break
            bundle = base64.b64encode(webhook.files.authority.read_bytes()).decode()
            while (await registered(webhook.client, "/jobs/mutate"))["clientConfig"]["caBundle"] != bundle:
                await asyncio.wait_for(asyncio.to_thread(webhook.files.states), DEADLINE)


def test_a_broken_exchange_leaves_the_certificates_in_use(tmp_path):
    files = issued(tmp_path / "tls", trustme.CA())
    certificates = Certificates(files)
    bundle = certificates.bundle
    files.key.write_text("not a key")

    assert certificates.changed()
    with pytest.raises(CertificateError):
        certificates.load()

    assert certificates.bundle == bundle


def test_missing_files_are_fatal(tmp_path):
    with pytest.raises(CertificateError):
        Certificates(CertificateFiles(tmp_path / "a", tmp_path / "b", tmp_path / "c"))


def test_own_certificates_are_good_for_the_service_and_kept(tmp_path):
    hosts = ["webhook.volcano-system.svc"]

    first = make_files(tmp_path / "pki", hosts, SystemClock())
    content = first.certificate.read_bytes()
    again = make_files(tmp_path / "pki", hosts, SystemClock())

    assert again.certificate.read_bytes() == content
    assert Certificates(first).bundle.startswith(b"-----BEGIN CERTIFICATE-----")
