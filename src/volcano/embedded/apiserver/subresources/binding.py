"""binding: give a pod its node."""

from __future__ import annotations

from typing import Any

from volcano.api import field_errors as says
from volcano.api.errors import BadRequest, Conflict, Invalid
from volcano.api.meta import JSON
from volcano.embedded.apiserver.calls import Call
from volcano.embedded.apiserver.verbs.writing import update_object
from volcano.embedded.apiserver.wire.bodies import decode_request_kind
from volcano.embedded.apiserver.wire.representation import reply, success
from volcano.embedded.apiserver.wire.requests import write_options
from volcano.machinery.transport import Response


async def bind(call: Call) -> Response:
    """Give an unbound pod its node; a pod that has one, or is being deleted, is a conflict."""
    binding = decode_request_kind(call.request, "v1", "Binding")
    target = binding.get("target")
    target = target if isinstance(target, dict) else {}
    node, metadata = target.get("name"), binding.get("metadata") or {}
    if not isinstance(node, str) or not node:
        raise Invalid.of("Binding", call.target.name, [says.required("target.name")])
    if target.get("kind") not in (None, "", "Node"):
        error = says.not_supported("target.kind", target["kind"], ("Node", "<empty>"))
        raise Invalid.of("Binding", call.target.name, [error])
    if not isinstance(metadata, dict):
        raise BadRequest("Binding: metadata must be an object")

    def assign(pod: JSON) -> JSON:
        _check_bindable(pod, metadata.get("uid"))
        about = {**pod["metadata"]}
        for field in ("annotations", "labels"):
            if isinstance(metadata.get(field), dict):
                about[field] = {**(about.get(field) or {}), **metadata[field]}
        scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": call.backend.timestamp()}
        status = pod.get("status", {})
        others = [c for c in status.get("conditions") or [] if c.get("type") != "PodScheduled"]
        return {
            **pod,
            "metadata": about,
            "spec": {**pod["spec"], "nodeName": node},
            "status": {**status, "conditions": [*others, scheduled]},
        }

    await update_object(call, assign, write_options(call.request), subresource="binding", keeps_argument=True)
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
