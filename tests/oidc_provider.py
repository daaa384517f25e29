"""OidcProvider: a small OpenID Connect provider over TLS on loopback: discovery, codes with PKCE, signed ID tokens, keys.

It approves every request at once, for the person in `claims`; `planted` changes what it would answer by itself.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlencode, urlsplit

import trustme
from cryptography.hazmat.primitives.asymmetric import rsa

KID = "first"


class OidcProvider:
    """`codes` are those that were given and not yet used, with the request that each answers."""

    def __init__(self, port: int, client_id: str, client_secret: str = "") -> None:
        self.issuer = f"https://127.0.0.1:{port}"
        self.client_id, self.client_secret = client_id, client_secret
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.claims: dict[str, Any] = {"sub": "1", "email": "tina@example.com", "groups": ["team"]}
        self.planted: dict[str, Any] = {}
        self.codes: dict[str, dict[str, str]] = {}
        self.ca_file = Path()

    def answer(self, method: str, path: str, query: dict[str, str], form: dict[str, str], authorization: str) -> Any:
        """A document, or a text that is an address to go to."""
        if path == "/.well-known/openid-configuration":
            return 200, {
                "issuer": self.planted.get("issuer", self.issuer),
                "authorization_endpoint": f"{self.issuer}/authorize",
                "token_endpoint": f"{self.issuer}/token",
                "jwks_uri": f"{self.issuer}/keys",
                "response_types_supported": ["code"],
                "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": ["RS256"],
            }
        if path == "/keys":
            return 200, {"keys": [_public(self.key)]}
        if path == "/authorize":
            return self._authorize(query)
        if path == "/token" and method == "POST":
            return self._token(form, authorization)
        return 404, {"error": "not_found"}

    def _authorize(self, query: dict[str, str]) -> Any:
        if query.get("client_id") != self.client_id or query.get("code_challenge_method") != "S256":
            return 400, {"error": "invalid_request"}
        if "error" in self.planted:
            return (
                302,
                f"{query['redirect_uri']}?{urlencode({'error': self.planted['error'], 'state': query['state']})}",
            )
        code = secrets.token_urlsafe()
        self.codes[code] = query
        return 302, f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state']})}"

    def _token(self, form: dict[str, str], authorization: str) -> Any:
        asked = self.codes.pop(form.get("code", ""), None)
        if asked is None or form.get("redirect_uri") != asked["redirect_uri"]:
            return 400, {"error": "invalid_grant", "error_description": "the code is not known"}
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        if _encoded(digest) != asked["code_challenge"]:
            return 400, {"error": "invalid_grant", "error_description": "the verifier is wrong"}
        if self.client_secret:
            given = base64.b64decode(authorization.removeprefix("Basic ")).decode()
            if [unquote(part) for part in given.split(":")] != [self.client_id, self.client_secret]:
                return 401, {"error": "invalid_client"}
        return 200, {"id_token": self.id_token(asked.get("nonce", "")), "token_type": "Bearer", "access_token": "x"}

    def id_token(self, nonce: str) -> str:
        import jwt

        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "aud": self.client_id,
            "iat": now,
            "exp": now + 600,
            "nonce": nonce,
            **self.claims,
        }
        claims |= self.planted.get("claims", {})
        if self.planted.get("unsigned"):
            return jwt.encode(claims, None, algorithm="none", headers={"kid": KID})
        return jwt.encode(claims, self.planted.get("key", self.key), algorithm="RS256", headers={"kid": KID})


def _public(key: rsa.RSAPrivateKey) -> dict[str, str]:
    numbers = key.public_key().public_numbers()
    size = (numbers.n.bit_length() + 7) // 8
    texts = {"n": _encoded(numbers.n.to_bytes(size)), "e": _encoded(numbers.e.to_bytes(3))}
    return {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": KID, **texts}


def _encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


@contextmanager
def oidc_provider(folder: Path, client_id: str = "dashboard", client_secret: str = "") -> Iterator[OidcProvider]:
    """Runs while the block does; its certificate is of an authority in `ca_file`."""
    box: list[OidcProvider] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._reply({})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            self._reply(_last(body))

        def _reply(self, form: dict[str, str]) -> None:
            parts = urlsplit(self.path)
            authorization = self.headers.get("authorization", "")
            status, found = box[0].answer(self.command, parts.path, _last(parts.query), form, authorization)
            body = b"" if isinstance(found, str) else json.dumps(found).encode()
            self.send_response(status)
            if isinstance(found, str):
                self.send_header("location", found)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    provider = OidcProvider(server.server_address[1], client_id, client_secret)
    box.append(provider)
    provider.ca_file = folder / "oidc-ca.crt"
    authority.cert_pem.write_to_path(str(provider.ca_file))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


def _last(text: str) -> dict[str, str]:
    return {name: values[-1] for name, values in parse_qs(text).items()}
