"""What hangs below an object: status, scale, binding, eviction, log, token, finalize, proxies."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from volcano.api.errors import BadRequest, Conflict, MethodNotAllowed, NotFound
from volcano.api.meta import JSON
from volcano.apiserver.calls import Call, decode_body
from volcano.apiserver.representation import reply, success
from volcano.apiserver.requests import write_options
from volcano.apiserver.verbs.get import get
from volcano.apiserver.verbs.patch import patch
from volcano.apiserver.verbs.update import update
from volcano.apiserver.verbs.writing import update_object
from volcano.machinery.transport import Response

Handle = Callable[[Call], Awaitable[Response]]


async def bind(call: Call) -> Response:
    """Give an unbound pod its node; a pod that has one, or is being deleted, is a conflict."""
    if call.target.verb != "create":
        raise MethodNotAllowed("the server does not allow this method on the requested resource")
    binding = decode_body(call.request, what="Binding")
    target = binding.get("target")
    target = target if isinstance(target, dict) else {}
    node = target.get("name")
    if not isinstance(node, str) or not node:
        raise BadRequest("Binding: target.name: Required value")
    if target.get("kind") not in (None, "", "Node"):
        raise BadRequest('Binding: target.kind: Unsupported value: supported values: "Node", "<empty>"')
    metadata = binding.get("metadata") or {}
    uid = metadata.get("uid")
    row = call.served.type

    def assign(pod: JSON) -> JSON:
        name = pod["metadata"]["name"]
        if uid and uid != pod["metadata"]["uid"]:
            why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {pod['metadata']['uid']}"
            raise Conflict.of(row.plural, name, why)
        if pod["metadata"].get("deletionTimestamp"):
            raise Conflict.of("pods/binding", name, f"pod {name} is being deleted, cannot be assigned to a host")
        spec = pod["spec"]
        if spec.get("nodeName"):
            raise Conflict.of("pods/binding", name, f'pod {name} is already assigned to node "{spec["nodeName"]}"')
        if spec.get("schedulingGates"):
            raise Conflict.of("pods/binding", name, f"pod {name} has non-empty .spec.schedulingGates")
        spec["nodeName"] = node
        for field in ("annotations", "labels"):
            if isinstance(metadata.get(field), dict):
                pod["metadata"][field] = {**(pod["metadata"].get(field) or {}), **metadata[field]}
        status = pod.setdefault("status", {})
        status["conditions"] = _with_condition(
            status.get("conditions") or [],
            {
                "type": "PodScheduled",
                "status": "True",
                "lastProbeTime": None,
                "lastTransitionTime": call.backend.timestamp(),
            },
        )
        return pod

    await update_object(call, assign, write_options(call.request), subresource="binding")
    return reply(success(), 201, call.warnings)


def _with_condition(conditions: list[JSON], condition: JSON) -> list[JSON]:
    others = [c for c in conditions if c.get("type") != condition["type"]]
    return [*others, condition]


async def status(call: Call) -> Response:
    handlers: Mapping[str, Handle] = {"get": get, "update": update, "patch": patch}
    return await _by_verb(call, handlers)


async def _by_verb(call: Call, handlers: Mapping[str, Handle]) -> Response:
    handler = handlers.get(call.target.verb)
    if handler is None:
        raise MethodNotAllowed("the server does not allow this method on the requested resource")
    return await handler(call)


HANDLERS: Final[Mapping[str, Handle]] = {
    "status": status,
    "binding": bind,
}


async def serve_subresource(call: Call) -> Response:
    name = call.target.subresource
    if name not in call.served.type.subresources or name not in HANDLERS:
        raise NotFound("the server could not find the requested resource")
    return await HANDLERS[name](call)
