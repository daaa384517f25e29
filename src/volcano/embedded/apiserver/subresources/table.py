"""What hangs below an object: status, scale, binding, eviction, log, token, finalize, ephemeral containers, proxies."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Any, Final

import msgspec

from volcano.api.errors import BadRequest, Conflict, FieldError, Invalid, MethodNotAllowed, NotFound
from volcano.api.meta import JSON
from volcano.api.times import timestamp
from volcano.embedded.apiserver.access.authentication import ISSUER, Claims
from volcano.embedded.apiserver.calls import Call
from volcano.embedded.apiserver.subresources.eviction import evict
from volcano.embedded.apiserver.subresources.proxies import log, proxy
from volcano.embedded.apiserver.subresources.scale import scale
from volcano.embedded.apiserver.verbs.get import get
from volcano.embedded.apiserver.verbs.patch import patch
from volcano.embedded.apiserver.verbs.update import update
from volcano.embedded.apiserver.verbs.writing import update_object
from volcano.embedded.apiserver.wire.bodies import decode_request_kind
from volcano.embedded.apiserver.wire.representation import reply, success
from volcano.embedded.apiserver.wire.requests import write_options
from volcano.machinery.transport import Response

Handle = Callable[[Call], Awaitable[Response]]

SHORTEST_TOKEN: Final = 600
LONGEST_TOKEN: Final = 2**32
DEFAULT_TOKEN: Final = 3600


async def bind(call: Call) -> Response:
    """Give an unbound pod its node; a pod that has one, or is being deleted, is a conflict."""
    binding = decode_request_kind(call.request, "v1", "Binding")
    target = binding.get("target")
    target = target if isinstance(target, dict) else {}
    node, metadata = target.get("name"), binding.get("metadata") or {}
    if not isinstance(node, str) or not node:
        raise Invalid.of(
            "Binding", call.target.name, [FieldError("target.name", "Required value", "FieldValueRequired")]
        )
    if target.get("kind") not in (None, "", "Node"):
        raise Invalid.of(
            "Binding",
            call.target.name,
            [FieldError("target.kind", f'Unsupported value: "{target["kind"]}": supported values: "Node", "<empty>"')],
        )
    if not isinstance(metadata, dict):
        raise BadRequest("Binding: metadata must be an object")

    def assign(pod: JSON) -> JSON:
        _check_bindable(pod, metadata.get("uid"))
        pod["spec"]["nodeName"] = node
        for field in ("annotations", "labels"):
            if isinstance(metadata.get(field), dict):
                pod["metadata"][field] = {**(pod["metadata"].get(field) or {}), **metadata[field]}
        status = pod.setdefault("status", {})
        scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": call.backend.timestamp()}
        others = [c for c in status.get("conditions") or [] if c.get("type") != "PodScheduled"]
        status["conditions"] = [*others, {"lastProbeTime": None, **scheduled}]
        return pod

    await update_object(call, assign, write_options(call.request), subresource="binding")
    return reply({**success(), "code": 201}, 201, call.warnings)


def _check_bindable(pod: JSON, uid: Any) -> None:
    name = pod["metadata"]["name"]
    if uid and uid != pod["metadata"]["uid"]:
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {pod['metadata']['uid']}"
        raise Conflict.of("pods", name, why)
    if pod["metadata"].get("deletionTimestamp"):
        raise Conflict.of("pods/binding", name, f"pod {name} is being deleted, cannot be assigned to a host")
    if pod["spec"].get("nodeName"):
        assigned = pod["spec"]["nodeName"]
        raise Conflict.of("pods/binding", name, f'pod {name} is already assigned to node "{assigned}"')
    if pod["spec"].get("schedulingGates"):
        raise Conflict.of("pods/binding", name, f"pod {name} has non-empty .spec.schedulingGates")


async def finalize(call: Call) -> Response:
    """Change a namespace's spec.finalizers; the last one gone, and the deleted namespace is gone."""
    return await (patch if call.target.verb == "patch" else update)(call)


async def token(call: Call) -> Response:
    """A signed token for a service account."""
    account: JSON = msgspec.json.decode(call.found().raw)
    body: JSON = {}
    if call.request.body.strip():
        body = decode_request_kind(call.request, "authentication.k8s.io/v1", "TokenRequest")
    spec = body.get("spec") or {}
    if not isinstance(spec, dict):
        raise BadRequest("TokenRequest: spec must be an object")
    seconds = spec.get("expirationSeconds", DEFAULT_TOKEN)
    if not isinstance(seconds, int) or isinstance(seconds, bool) or not SHORTEST_TOKEN <= seconds <= LONGEST_TOKEN:
        raise Invalid.of(
            "TokenRequest",
            call.target.name,
            [
                FieldError(
                    "spec.expirationSeconds",
                    f"Invalid value: {seconds}: may not specify a duration less than 10 minutes",
                )
            ],
            "authentication.k8s.io",
        )
    audiences = spec.get("audiences") or [ISSUER]
    if not isinstance(audiences, list) or not all(isinstance(a, str) for a in audiences):
        raise BadRequest("TokenRequest: spec.audiences must be a list of strings")
    reference = spec.get("boundObjectRef") or {}
    pod, pod_uid = _bound_pod(call, account, reference)
    metadata = account["metadata"]
    expires = call.backend.clock.now() + timedelta(seconds=seconds)
    claims = Claims(
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


async def connect(call: Call) -> Response:
    raise BadRequest("Upgrade request required")


_READ_WRITE: Final[Mapping[str, Handle]] = {"get": get, "update": update, "patch": patch}

HANDLERS: Final[Mapping[str, Mapping[str, Handle]]] = {
    "status": _READ_WRITE,
    "ephemeralcontainers": _READ_WRITE,
    "resize": _READ_WRITE,
    "scale": {"get": scale, "update": scale, "patch": scale},
    "binding": {"create": bind},
    "eviction": {"create": evict},
    "log": {"get": log},
    "token": {"create": token},
    "finalize": {"update": finalize, "patch": finalize},
    "exec": {"get": connect, "create": connect},
    "attach": {"get": connect, "create": connect},
    "portforward": {"get": connect, "create": connect},
    "proxy": dict.fromkeys(("get", "create", "update", "patch", "delete", "options"), proxy),
}


async def serve_subresource(call: Call) -> Response:
    name = call.target.subresource
    handlers = HANDLERS.get(name)
    if name not in call.served.type.subresources or handlers is None:
        raise NotFound("the server could not find the requested resource")
    if name != "proxy" and call.target.rest:
        raise NotFound("the server could not find the requested resource")
    handler = handlers.get(call.target.verb)
    if handler is None:
        raise MethodNotAllowed("the server does not allow this method on the requested resource")
    return await handler(call)
