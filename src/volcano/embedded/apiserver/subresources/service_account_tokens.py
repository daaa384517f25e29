"""token: a signed token for a service account, bound to a pod if the request asks for it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

import msgspec

from volcano.api import field_errors as says
from volcano.api.errors import BadRequest, Conflict, Invalid, NotFound
from volcano.api.meta import JSON
from volcano.api.times import timestamp
from volcano.embedded.apiserver.access.authentication import ISSUER, TokenClaims
from volcano.embedded.apiserver.calls import Call
from volcano.embedded.apiserver.wire.bodies import decode_request_kind
from volcano.embedded.apiserver.wire.representation import reply
from volcano.machinery.transport import Response

MIN_TOKEN_SECONDS: Final = 600
MAX_TOKEN_SECONDS: Final = 2**32
DEFAULT_TOKEN_SECONDS: Final = 3600


async def token(call: Call) -> Response:
    """A signed token for a service account."""
    account: JSON = msgspec.json.decode(call.found().raw)
    body: JSON = {}
    if call.request.body.strip():
        body = decode_request_kind(call.request, "authentication.k8s.io/v1", "TokenRequest")
    spec = body.get("spec") or {}
    if not isinstance(spec, dict):
        raise BadRequest("TokenRequest: spec must be an object")
    seconds = spec.get("expirationSeconds", DEFAULT_TOKEN_SECONDS)
    is_number = isinstance(seconds, int) and not isinstance(seconds, bool)
    if not is_number or not MIN_TOKEN_SECONDS <= seconds <= MAX_TOKEN_SECONDS:
        too_long = is_number and seconds > MAX_TOKEN_SECONDS
        why = f"may not specify a duration {'larger than 2^32 seconds' if too_long else 'less than 10 minutes'}"
        error = says.invalid("spec.expirationSeconds", seconds, why)
        raise Invalid.of("TokenRequest", call.target.name, [error], "authentication.k8s.io")
    audiences = spec.get("audiences") or [ISSUER]
    if not isinstance(audiences, list) or not all(isinstance(a, str) for a in audiences):
        raise BadRequest("TokenRequest: spec.audiences must be a list of strings")
    reference = spec.get("boundObjectRef") or {}
    pod, pod_uid = _bound_pod(call, account, reference)
    metadata = account["metadata"]
    expires = call.backend.clock.now() + timedelta(seconds=seconds)
    claims = TokenClaims(
        metadata["namespace"], metadata["name"], metadata["uid"], expires.timestamp(), tuple(audiences), pod, pod_uid
    )
    answer = {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"name": metadata["name"], "namespace": metadata["namespace"]},
        "spec": {**spec, "audiences": audiences, "expirationSeconds": seconds},
        "status": {"token": call.backend.issue_token(claims), "expirationTimestamp": timestamp(expires)},
    }
    return reply(answer, 201)


def _bound_pod(call: Call, account: JSON, reference: Any) -> tuple[str, str]:
    if not reference:
        return "", ""
    if not isinstance(reference, dict) or reference.get("kind") != "Pod":
        raise BadRequest("cannot bind token for serviceaccount: only pods are supported")
    name = str(reference.get("name") or "")
    stored = call.backend.store.find(call.key_of(name)._replace(resource="pods"))
    if stored is None:
        raise NotFound.of("pods", name)
    pod = msgspec.json.decode(stored.raw)
    uid = pod["metadata"]["uid"]
    if reference.get("uid") and reference["uid"] != uid:
        raise Conflict.of(
            "pods",
            name,
            f"the UID in the bound object reference ({reference['uid']}) does not match the UID in record. "
            "The object might have been deleted and then recreated",
        )
    if (pod["spec"].get("serviceAccountName") or "default") != account["metadata"]["name"]:
        raise BadRequest(
            f"cannot bind token for serviceaccount {account['metadata']['name']!r} to pod running with a "
            "different serviceaccount name."
        )
    return name, uid
