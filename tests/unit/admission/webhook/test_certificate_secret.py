"""The Secret with the webhook's certificate: created once, renewed in time."""

import asyncio
import base64
from datetime import timedelta

import pytest
from cryptography import x509
from webhook_site import virtually

from volcano.admission.webhook.certificate_secret import SECRETS, ensure_secret, is_valid_for_long, service_names
from volcano.api.meta import Key

KEY = Key("default", "certificate")
HOSTS = service_names("webhook", "default")


async def content(client):
    return (await client.get_json(SECRETS, KEY))["data"]


def test_a_secret_is_created_once_and_renewed_when_it_is_not_valid_for_long():
    async def play(client, clock):
        assert await ensure_secret(client, clock, KEY, HOSTS) == "created"
        first = await content(client)
        certificate = x509.load_pem_x509_certificate(base64.b64decode(first["tls.crt"]))
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        assert set(HOSTS) <= set(names.get_values_for_type(x509.DNSName))

        assert await ensure_secret(client, clock, KEY, HOSTS) == "still valid"
        assert await content(client) == first

        expiry = certificate.not_valid_after_utc
        assert is_valid_for_long(first, expiry - timedelta(days=61))
        assert not is_valid_for_long(first, expiry - timedelta(days=59))

        await client.patch(SECRETS, KEY, {"data": {"tls.key": ""}})
        assert await ensure_secret(client, clock, KEY, HOSTS) == "renewed"
        renewed = await content(client)
        assert renewed["tls.crt"] != first["tls.crt"]
        assert is_valid_for_long(renewed, clock.now())

    virtually(play)


def test_of_two_jobs_at_once_one_creates_the_secret():
    async def play(client, clock):
        outcomes = await asyncio.gather(*(ensure_secret(client, clock, KEY, HOSTS) for _ in range(2)))

        assert outcomes.count("created") == 1
        assert set(outcomes) <= {"created", "created by another job meanwhile", "still valid"}

    virtually(play)


@pytest.mark.parametrize("data", [{}, {"tls.crt": "eA==", "ca.crt": "eA==", "tls.key": "eA=="}, {"tls.crt": "!"}])
def test_a_secret_without_certificates_is_not_valid(data):
    async def play(_client, clock):
        assert not is_valid_for_long(data, clock.now())

    virtually(play)
