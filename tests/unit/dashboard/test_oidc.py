"""Sign-in by OpenID Connect against a real small provider: what is accepted, and everything that is not."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import AsyncIterator, Iterator
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.oidc_provider import OidcProvider, oidc_provider
from volcano.app.dashboard_command import ProviderTransports
from volcano.dashboard.oidc import OidcLogin, OidcSettings, SignInFailed, is_safe
from volcano.machinery.clock import SystemClock
from volcano.machinery.ids import RandomIds

CALLBACK = "http://127.0.0.1:8480/login/oidc/callback"


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OidcProvider]:
    pytest.importorskip("jwt")  # an environment from before it was a dependency
    with oidc_provider(tmp_path_factory.mktemp("oidc"), client_secret="s:1/ü") as found:
        yield found


@pytest.fixture
async def login(provider: OidcProvider) -> AsyncIterator[OidcLogin]:
    provider.planted.clear()
    clock = SystemClock()
    transports = ProviderTransports(clock, provider.ca_file.read_bytes())
    settings = OidcSettings(provider.issuer, provider.client_id, provider.client_secret)
    yield OidcLogin(settings, clock, RandomIds(), transports)
    await transports.close()


def approved(provider: OidcProvider, place: str) -> dict[str, str]:
    """What the provider sends the browser back with."""
    parts = urlsplit(place)
    context = ssl.create_default_context(cafile=str(provider.ca_file))
    connection = http.client.HTTPSConnection(parts.hostname or "", parts.port, context=context, timeout=30)
    connection.request("GET", f"{parts.path}?{parts.query}")
    answer = connection.getresponse()
    connection.close()
    assert answer.status == 302, answer.read()
    back = urlsplit(answer.headers["location"])
    assert back.geturl().startswith(CALLBACK)
    return dict(parse_qsl(back.query))


async def test_a_sign_in_yields_the_id_token_and_the_place_that_was_asked_for(provider: OidcProvider, login: OidcLogin):
    place, browser = await login.begin(CALLBACK, "/jobs?queue=a")
    asked = dict(parse_qsl(urlsplit(place).query))

    token, wanted = await login.finish(approved(provider, place), browser)

    assert token.count(".") == 2 and wanted == "/jobs?queue=a"
    assert asked["code_challenge_method"] == "S256" and len(asked["state"]) >= 43 and "openid" in asked["scope"]
    assert asked["nonce"] != asked["state"] != browser


async def test_a_sign_in_ends_once_and_only_in_the_browser_that_began_it(provider: OidcProvider, login: OidcLogin):
    place, browser = await login.begin(CALLBACK, "/")
    answer = approved(provider, place)
    await login.finish(answer, browser)
    with pytest.raises(SignInFailed, match="not known here any more"):
        await login.finish(answer, browser)
    with pytest.raises(SignInFailed, match="not known here any more"):
        await login.finish({"code": "x", "state": "guessed"}, browser)

    place, _ = await login.begin(CALLBACK, "/")
    with pytest.raises(SignInFailed, match="another browser"):
        await login.finish(approved(provider, place), "")


async def test_a_code_is_of_no_use_without_the_verifier(provider: OidcProvider, login: OidcLogin):
    """Somebody who reads the code on its way begins a sign-in of their own, and brings the code there."""
    place, _ = await login.begin(CALLBACK, "/")
    stolen = approved(provider, place)["code"]
    place, browser = await login.begin(CALLBACK, "/")
    state = dict(parse_qsl(urlsplit(place).query))["state"]

    with pytest.raises(SignInFailed, match="the verifier is wrong"):
        await login.finish({"code": stolen, "state": state}, browser)


@pytest.mark.parametrize(
    ("planted", "message"),
    [
        ({"claims": {"nonce": "other"}}, "of another sign-in"),
        ({"claims": {"aud": "another"}}, "not valid"),
        ({"claims": {"aud": ["dashboard", "another"]}}, "another client"),
        ({"claims": {"iss": "https://evil.example"}}, "not valid"),
        ({"claims": {"exp": 1_000_000_000}}, "expired"),
        ({"claims": {"iat": 4_000_000_000, "exp": 4_100_000_000}}, "of the future"),
        ({"claims": {"sub": None}}, "not valid"),
        ({"key": rsa.generate_private_key(public_exponent=65537, key_size=2048)}, "not valid"),
        ({"unsigned": True}, "signed with 'none'"),
        ({"error": "access_denied"}, "refused: access_denied"),
    ],
    ids=["nonce", "audience", "azp", "issuer", "expired", "future", "nobody", "key", "unsigned", "refused"],
)
async def test_a_token_that_is_wrong_in_any_way_signs_nobody_in(
    provider: OidcProvider, login: OidcLogin, planted: dict[str, Any], message: str
):
    provider.planted.update(planted)
    place, browser = await login.begin(CALLBACK, "/")

    with pytest.raises(SignInFailed, match=message):
        await login.finish(approved(provider, place), browser)


async def test_a_provider_that_is_another_or_cannot_be_reached_is_named(provider: OidcProvider, login: OidcLogin):
    provider.planted["issuer"] = "https://evil.example"
    with pytest.raises(SignInFailed, match="calls itself"):
        await login.begin(CALLBACK, "/")

    clock = SystemClock()
    transports = ProviderTransports(clock, None)  # without its authority
    other = OidcLogin(OidcSettings(provider.issuer, "dashboard"), clock, RandomIds(), transports)
    with pytest.raises(SignInFailed, match="cannot be reached"):
        await other.begin(CALLBACK, "/")
    await transports.close()


def test_addresses_without_encryption_are_refused_beyond_this_machine():
    assert is_safe("https://accounts.example.com/x") and is_safe("http://127.0.0.1:5556/dex")
    assert not is_safe("http://accounts.example.com") and not is_safe("ftp://localhost/")
