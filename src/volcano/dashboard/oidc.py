"""Sign-in by OpenID Connect: the authorization code flow with PKCE. What it yields is an ID token that was checked.

The token is then a bearer token like any other: dashboard.logins asks the API server whether it accepts it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections import OrderedDict
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from volcano.api.meta import JSON
from volcano.machinery.clock import Clock
from volcano.machinery.ids import Ids
from volcano.machinery.transport import Request, Transport

ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signatures with a key that only the provider has; never `none`, and no shared secrets."""
DEFAULT_SCOPES: Final = ("openid", "profile", "email")
DISCOVERY: Final = "/.well-known/openid-configuration"
MAX_PENDING: Final = 1_000
PENDING_FOR: Final = timedelta(minutes=10)
KEEP_PROVIDER_FOR: Final = timedelta(hours=1)
KEYS_AGAIN_AFTER: Final = timedelta(seconds=10)
"""A token signed with an unknown key has the keys fetched again, but no more often than this."""
LEEWAY: Final = timedelta(seconds=30)
MAX_ANSWER_BYTES: Final = 1024 * 1024
MAX_PARAMETER_CHARACTERS: Final = 4_096
LOCAL: Final = ("localhost", "127.0.0.1", "::1")
WORD: Final = {"content-type": "application/x-www-form-urlencoded", "accept": "application/json"}


class SignInFailed(Exception):
    """The sign-in is refused; the message is for the person who tried."""


class OidcSettings(msgspec.Struct, frozen=True):
    """`redirect_url` is what the provider knows this dashboard by; empty: made from the address of each request."""

    issuer: str
    client_id: str
    client_secret: str = ""
    scopes: tuple[str, ...] = DEFAULT_SCOPES
    redirect_url: str = ""


class PendingLogin(msgspec.Struct, frozen=True):
    nonce: str
    verifier: str
    redirect: str
    place: str
    browser: str  # the secret of the cookie: another browser cannot bring this login to its end
    began: float


class ProviderFacts(msgspec.Struct, frozen=True):
    authorize: str
    token: str
    keys: str
    posts_secret: bool
    fetched: float


class OidcLogin:
    """`transport_for` gives the connection to an origin such as `https://accounts.example.com`."""

    def __init__(
        self, settings: OidcSettings, clock: Clock, ids: Ids, transport_for: Callable[[str], Transport]
    ) -> None:
        self.settings = settings
        self._clock, self._ids, self._transport_for = clock, ids, transport_for
        self._pending: OrderedDict[str, PendingLogin] = OrderedDict()
        self._facts: ProviderFacts | None = None
        self._keys: dict[str, JSON] = {}
        self._keys_fetched = float("-inf")

    @property
    def name(self) -> str:
        return urlsplit(self.settings.issuer).netloc

    async def begin(self, redirect: str, place: str) -> tuple[str, str]:
        """The provider's address to go to, and the secret that the browser has to bring back in a cookie."""
        facts = await self._provider()
        now = self._clock.monotonic()
        while self._pending and (
            len(self._pending) >= MAX_PENDING
            or now - next(iter(self._pending.values())).began > PENDING_FOR.total_seconds()
        ):
            self._pending.popitem(last=False)
        state, nonce, verifier, browser = (self._secret() for _ in range(4))
        redirect = self.settings.redirect_url or redirect
        self._pending[state] = PendingLogin(nonce, verifier, redirect, place, browser, now)
        query = {
            "response_type": "code",
            "client_id": self.settings.client_id,
            "redirect_uri": redirect,
            "scope": " ".join(dict.fromkeys(("openid", *self.settings.scopes))),
            "state": state,
            "nonce": nonce,
            "code_challenge": _encoded(hashlib.sha256(verifier.encode()).digest()),
            "code_challenge_method": "S256",
        }
        return f"{facts.authorize}{'&' if '?' in facts.authorize else '?'}{urlencode(query)}", browser

    async def finish(self, query: Mapping[str, str], browser: str) -> tuple[str, str]:
        """The ID token, and the place in the dashboard that was asked for first."""
        pending = self._pending.pop(query.get("state", "")[:MAX_PARAMETER_CHARACTERS], None)
        age = self._clock.monotonic() - pending.began if pending is not None else 0.0
        if pending is None or age > PENDING_FOR.total_seconds():
            raise SignInFailed("This sign-in is not known here any more. Begin again.")
        if not hmac.compare_digest(pending.browser.encode(), browser.encode()):
            raise SignInFailed("This sign-in was begun in another browser. Begin again.")
        if "error" in query:
            more = query.get("error_description", "")
            raise SignInFailed(f"{self.name} refused: {query['error']}{f', {more}' if more else ''}"[:300])
        code = query.get("code", "")[:MAX_PARAMETER_CHARACTERS]
        if not code:
            raise SignInFailed(f"{self.name} sent no code. Begin again.")
        token = await self._exchange(code, pending)
        await self._check(token, pending.nonce)
        return token, pending.place

    # -- the provider ----------------------------------------------------------------------------------------------
    async def _provider(self) -> ProviderFacts:
        now = self._clock.monotonic()
        if self._facts is not None and now - self._facts.fetched < KEEP_PROVIDER_FOR.total_seconds():
            return self._facts
        found = await self._ask(Request("GET", ""), self.settings.issuer.rstrip("/") + DISCOVERY)
        if found.get("issuer") != self.settings.issuer:
            raise SignInFailed(f"{self.name} calls itself {found.get('issuer')!r}, not {self.settings.issuer!r}")
        urls = [found.get(name) for name in ("authorization_endpoint", "token_endpoint", "jwks_uri")]
        for url in urls:
            if not isinstance(url, str) or not is_safe(url):
                raise SignInFailed(f"{self.name} names {url!r}, which is not an https address")
        methods = found.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
        posts = "client_secret_basic" not in methods and "client_secret_post" in methods
        self._facts = ProviderFacts(str(urls[0]), str(urls[1]), str(urls[2]), posts, now)
        return self._facts

    async def _exchange(self, code: str, pending: PendingLogin) -> str:
        facts, settings = await self._provider(), self.settings
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": pending.redirect,
            "client_id": settings.client_id,
            "code_verifier": pending.verifier,
        }
        headers = dict(WORD)
        if settings.client_secret and facts.posts_secret:
            form["client_secret"] = settings.client_secret
        elif settings.client_secret:
            pair = f"{quote(settings.client_id, safe='')}:{quote(settings.client_secret, safe='')}"
            headers["authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        answer = await self._ask(Request("POST", "", headers=headers, body=urlencode(form).encode()), facts.token)
        token = answer.get("id_token")
        if not isinstance(token, str):
            raise SignInFailed(f"{self.name} sent no ID token; the scope openid has to be allowed")
        return token

    async def _ask(self, request: Request, url: str) -> JSON:
        parts = urlsplit(url)
        path = parts.path or "/"
        query = tuple(tuple(each.split("=", 1)) for each in parts.query.split("&") if "=" in each)
        request = msgspec.structs.replace(request, path=path, query=query)
        try:
            answer = await self._transport_for(f"{parts.scheme}://{parts.netloc}").send(request)
        except (ConnectionError, TimeoutError) as error:
            raise SignInFailed(f"{parts.netloc} cannot be reached: {error}"[:300]) from error
        try:
            found = msgspec.json.decode(answer.body[:MAX_ANSWER_BYTES])
        except (msgspec.DecodeError, RecursionError) as error:
            raise SignInFailed(f"{parts.netloc} answers {path} with {answer.status} and no JSON") from error
        if answer.status != 200 or not isinstance(found, dict):
            why = found.get("error_description") or found.get("error") if isinstance(found, dict) else ""
            raise SignInFailed(f"{parts.netloc} answers {path} with {answer.status}{f': {why}' if why else ''}"[:300])
        return found

    # -- the token -------------------------------------------------------------------------------------------------
    async def _check(self, token: str, nonce: str) -> None:
        """Signature, issuer, audience, times and nonce (OpenID Connect Core, 3.1.3.7)."""
        import jwt

        try:
            header = jwt.get_unverified_header(token)
            if header.get("alg") not in ALGORITHMS:
                raise SignInFailed(f"the ID token is signed with {header.get('alg')!r}, which is not accepted")
            key = jwt.PyJWK.from_dict(await self._key(str(header.get("kid") or "")), header["alg"])
            claims = jwt.decode(
                token,
                key,
                algorithms=[header["alg"]],
                audience=self.settings.client_id,
                issuer=self.settings.issuer,
                # The times are compared with our own clock below.
                options={
                    "require": ["exp", "iat", "sub", "aud", "iss"],
                    "verify_exp": False,
                    "verify_iat": False,
                    "verify_nbf": False,
                },
            )
        except jwt.PyJWTError as error:
            raise SignInFailed(f"the ID token of {self.name} is not valid: {error}") from error
        self._check_claims(claims, nonce)

    def _check_claims(self, claims: Mapping[str, Any], nonce: str) -> None:
        now = self._clock.now().timestamp()
        if not isinstance(claims["exp"], int | float) or claims["exp"] < now - LEEWAY.total_seconds():
            raise SignInFailed("the ID token has expired; is the clock of this machine right?")
        if not isinstance(claims["iat"], int | float) or claims["iat"] > now + LEEWAY.total_seconds():
            raise SignInFailed("the ID token is of the future; is the clock of this machine right?")
        if not hmac.compare_digest(str(claims.get("nonce") or "").encode(), nonce.encode()):
            raise SignInFailed("the ID token is of another sign-in")
        audience = claims["aud"]
        is_shared = isinstance(audience, list) and len(audience) > 1
        if (is_shared or "azp" in claims) and claims.get("azp") != self.settings.client_id:
            raise SignInFailed("the ID token was given to another client")

    async def _key(self, kid: str) -> JSON:
        found, now = self._known_key(kid), self._clock.monotonic()
        age = now - self._keys_fetched
        if age > KEEP_PROVIDER_FOR.total_seconds() or (found is None and age > KEYS_AGAIN_AFTER.total_seconds()):
            facts = await self._provider()
            answer = await self._ask(Request("GET", ""), facts.keys)
            keys = answer.get("keys")
            listed = [key for key in keys if isinstance(key, dict)] if isinstance(keys, list) else []
            self._keys = {str(key.get("kid") or ""): key for key in listed if key.get("use", "sig") == "sig"}
            self._keys_fetched = now
            found = self._known_key(kid)
        if found is None:
            raise SignInFailed(f"the ID token is signed with a key that {self.name} does not list")
        return found

    def _known_key(self, kid: str) -> JSON | None:
        if not kid and len(self._keys) == 1:
            return next(iter(self._keys.values()))
        return self._keys.get(kid)

    def _secret(self) -> str:
        return _encoded(self._ids.token())


def is_safe(url: str) -> bool:
    """https, or this machine."""
    parts = urlsplit(url)
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOCAL)


def _encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
