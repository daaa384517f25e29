"""Authentication: client certificates, static tokens and service account tokens; and what an impersonation needs.

The HTTP edge hands over the subject of the peer's certificate, which TLS has verified. No header names a user.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Final

import msgspec

from volcano.api.errors import BadRequest, Unauthorized
from volcano.api.meta import JSON
from volcano.embedded.apiserver.store.contract import ObjectKey, Store
from volcano.machinery.clock import Clock
from volcano.machinery.transport import Request, User

ANONYMOUS: Final = User("system:anonymous", ("system:unauthenticated",))
AUTHENTICATED: Final = "system:authenticated"
ISSUER: Final = "https://kubernetes.default.svc.cluster.local"
MAX_CACHED_TOKENS: Final = 1024
MAX_TOKEN_CHARACTERS: Final = 16 * 1024


class Subject(msgspec.Struct, frozen=True):
    """The subject of a verified client certificate."""

    name: str
    groups: tuple[str, ...] = ()


class TokenClaims(msgspec.Struct, frozen=True):
    """The claims of a service account token."""

    namespace: str
    name: str
    uid: str
    expires: float
    audiences: tuple[str, ...]
    pod: str = ""
    pod_uid: str = ""


class Authenticator:
    """Finds the user of a request; None for a request without credentials."""

    def __init__(
        self, store: Store, clock: Clock, *, tokens: Mapping[str, User] | None = None, signing_key: bytes | None = None
    ) -> None:
        self._store = store
        self._clock = clock
        self._tokens = {token: user for token, user in (tokens or {}).items() if token}
        self._signing_key = signing_key
        self._verified: OrderedDict[str, TokenClaims] = OrderedDict()

    def user(self, request: Request, certificate: Subject | None) -> User | None:
        """The user, or None without credentials; bad credentials are Unauthorized."""
        if certificate is not None and certificate.name:
            return with_authenticated(User(certificate.name, certificate.groups))
        header = request.headers.get("authorization", "")
        if not header:
            return None
        scheme, _, token = header.partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise Unauthorized("Unauthorized")
        user = self.user_of_token(token.strip())
        if user is None:
            raise Unauthorized("Unauthorized")
        return user

    def user_of_token(self, token: str, audiences: Sequence[str] = ()) -> User | None:
        if len(token) > MAX_TOKEN_CHARACTERS:
            return None
        for known, user in self._tokens.items():
            if hmac.compare_digest(known.encode(), token.encode()):
                return with_authenticated(user)
        return self._service_account(token, audiences)

    def issue(self, claims: TokenClaims) -> str:
        """A signed token for a service account."""
        now = int(self._clock.now().timestamp())
        account: JSON = {"name": claims.name, "uid": claims.uid}
        kubernetes: JSON = {"namespace": claims.namespace, "serviceaccount": account}
        if claims.pod:
            kubernetes["pod"] = {"name": claims.pod, "uid": claims.pod_uid}
        payload = {
            "iss": ISSUER,
            "sub": f"system:serviceaccount:{claims.namespace}:{claims.name}",
            "aud": list(claims.audiences),
            "exp": int(claims.expires),
            "iat": now,
            "nbf": now,
            "kubernetes.io": kubernetes,
        }
        head = _encode(msgspec.json.encode({"alg": "ES256", "typ": "JWT"}))
        body = _encode(msgspec.json.encode(payload))
        signed = f"{head}.{body}"
        return f"{signed}.{_encode(_sign(self._key(), signed.encode()))}"

    def _key(self) -> bytes:
        if self._signing_key is None:
            self._signing_key = _temporary_key()
        return self._signing_key

    def _service_account(self, token: str, audiences: Sequence[str]) -> User | None:
        claims = self._claims(token)
        if claims is None or claims.expires < self._clock.now().timestamp():
            return None
        if not set(audiences or (ISSUER,)) & set(claims.audiences):
            return None
        stored = self._store.find(ObjectKey("serviceaccounts", claims.namespace, claims.name))
        if stored is None or msgspec.json.decode(stored.raw)["metadata"]["uid"] != claims.uid:
            return None
        extra: dict[str, tuple[str, ...]] = {}
        if claims.pod:
            pod = self._store.find(ObjectKey("pods", claims.namespace, claims.pod))
            if pod is None or msgspec.json.decode(pod.raw)["metadata"]["uid"] != claims.pod_uid:
                return None
            extra = {
                "authentication.kubernetes.io/pod-name": (claims.pod,),
                "authentication.kubernetes.io/pod-uid": (claims.pod_uid,),
            }
        return service_account_user(claims.namespace, claims.name, claims.uid, extra)

    def _claims(self, token: str) -> TokenClaims | None:
        known = self._verified.get(token)
        if known is not None:
            self._verified.move_to_end(token)
            return known
        claims = _verified_claims(token, self._key()) if token.count(".") == 2 else None
        if claims is not None:
            self._verified[token] = claims
            while len(self._verified) > MAX_CACHED_TOKENS:
                self._verified.popitem(last=False)
        return claims


def service_account_user(
    namespace: str, name: str, uid: str = "", extra: Mapping[str, tuple[str, ...]] | None = None
) -> User:
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", AUTHENTICATED)
    return User(f"system:serviceaccount:{namespace}:{name}", groups, uid, extra or {})


def with_authenticated(user: User) -> User:
    if AUTHENTICATED in user.groups:
        return user
    return msgspec.structs.replace(user, groups=(*user.groups, AUTHENTICATED))


def expiry(now: datetime, seconds: int) -> datetime:
    return now + timedelta(seconds=seconds)


class ImpersonationRequest(msgspec.Struct, frozen=True):
    """The user whom a request wants to impersonate, and what that needs: (group, resource, namespace, name)."""

    user: User
    needs: tuple[tuple[str, str, str, str], ...]


def impersonation(request: Request) -> ImpersonationRequest | None:
    """From the Impersonate-* headers; repeated groups arrive joined by a line feed."""
    headers = request.headers
    name = headers.get("impersonate-user", "")
    groups = [group for group in headers.get("impersonate-group", "").split("\n") if group]
    uid = headers.get("impersonate-uid", "")
    extra = {
        header.removeprefix("impersonate-extra-"): tuple(value.split("\n"))
        for header, value in headers.items()
        if header.startswith("impersonate-extra-")
    }
    if not name:
        if groups or uid or extra:
            raise BadRequest("requested impersonation without impersonating a user")
        return None
    needs: list[tuple[str, str, str, str]] = []
    if name.startswith("system:serviceaccount:") and name.count(":") == 3:
        _, _, namespace, account = name.split(":")
        needs.append(("", "serviceaccounts", namespace, account))
        groups = groups or ["system:serviceaccounts", f"system:serviceaccounts:{namespace}"]
    else:
        needs.append(("", "users", "", name))
    given = [group for group in headers.get("impersonate-group", "").split("\n") if group]
    needs += [("", "groups", "", group) for group in given]
    if uid:
        needs.append(("authentication.k8s.io", "uids", "", uid))
    needs += [
        ("authentication.k8s.io", f"userextras/{key}", "", value) for key, values in extra.items() for value in values
    ]
    if name != ANONYMOUS.name and AUTHENTICATED not in groups:
        groups.append(AUTHENTICATED)
    return ImpersonationRequest(User(name, tuple(groups), uid, extra), tuple(needs))


# ── JSON web tokens, ES256 only ──


def _encode(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _temporary_key() -> bytes:
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key = ec.generate_private_key(ec.SECP256R1())
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


@lru_cache(maxsize=4)
def _private_key(pem: bytes) -> Any:
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    return load_pem_private_key(pem, None)


def _sign(pem: bytes, content: bytes) -> bytes:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

    r, s = decode_dss_signature(_private_key(pem).sign(content, ec.ECDSA(hashes.SHA256())))
    return r.to_bytes(32, "big") + s.to_bytes(32, "big")


def _verified_claims(token: str, pem: bytes) -> TokenClaims | None:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

    head, body, signature = token.split(".")
    try:
        if msgspec.json.decode(_decode(head)).get("alg") != "ES256":
            return None
        raw = _decode(signature)
        if len(raw) != 64:
            return None
        encoded = encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
        _private_key(pem).public_key().verify(encoded, f"{head}.{body}".encode(), ec.ECDSA(hashes.SHA256()))
        return _claims_from(msgspec.json.decode(_decode(body)))
    except (
        InvalidSignature,
        binascii.Error,
        msgspec.DecodeError,
        KeyError,
        TypeError,
        AttributeError,
        ValueError,
        RecursionError,
    ):
        return None


def _claims_from(payload: JSON) -> TokenClaims:
    kubernetes = payload["kubernetes.io"]
    account, pod = kubernetes["serviceaccount"], kubernetes.get("pod") or {}
    return TokenClaims(
        kubernetes["namespace"],
        account["name"],
        account["uid"],
        float(payload["exp"]),
        tuple(payload["aud"]),
        pod.get("name", ""),
        pod.get("uid", ""),
    )
