"""Subresources answered elsewhere: a pod's log by its kubelet, `proxy` by the pod or by a service's endpoints."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote

import msgspec

from volcano.api.errors import BadRequest, MethodNotAllowed, error_from
from volcano.api.kubelet import NODE_HEADER
from volcano.api.meta import JSON
from volcano.embedded.apiserver.calls import Call
from volcano.embedded.apiserver.kinds.kubelets import kubelet_of_pod, only_container
from volcano.embedded.apiserver.wire.outbound import unverified
from volcano.embedded.apiserver.wire.requests import number
from volcano.machinery.transport import Response

_LOG_PARAMETERS: Final = (
    "follow",
    "previous",
    "timestamps",
    "sinceSeconds",
    "sinceTime",
    "tailLines",
    "limitBytes",
    "stream",
)


async def log(call: Call) -> Response:
    """From the kubelet, as it is; a followed log is a stream."""
    if call.target.verb != "get":
        raise MethodNotAllowed("the server does not allow this method on the requested resource")
    pod: JSON = msgspec.json.decode(call.found().raw)
    name = call.target.name
    containers = [c.get("name") for field in ("initContainers", "containers", "ephemeralContainers")
                  for c in (pod.get("spec") or {}).get(field) or []]  # fmt: skip
    container = call.request.param("container") or only_container(pod)
    if not container:
        raise BadRequest(
            f"a container name must be specified for pod {name}, choose one of: [{' '.join(map(str, containers))}]"
        )
    if container not in containers:
        raise BadRequest(f"container {container} is not valid for pod {name}")
    for parameter in ("tailLines", "limitBytes", "sinceSeconds"):
        asked = number(call.request, parameter)
        if asked is not None and asked < 0:
            raise BadRequest(f"{parameter}: Invalid value: {asked}: must be greater than or equal to 0")
    if not (pod.get("spec") or {}).get("nodeName"):
        return Response(200, {"content-type": "text/plain"})
    host, port, scheme = kubelet_of_pod(call.backend.store, pod)
    path = "/".join(quote(part, safe="") for part in (call.target.namespace, name, container))
    query = [(k, v) for k, v in call.request.query if k in _LOG_PARAMETERS]
    answer = await call.backend.outbound.fetch(
        "GET",
        f"{scheme}://{host}:{port}/containerLogs/{path}",
        query=query,
        context=call.backend.outbound.kubelet_context,
        streams=True,
    )
    if answer.status >= 400:
        # A kubelet sends its reason as plain text; clients expect a Status.
        said = answer.body if answer.stream is None else b"".join([chunk async for chunk in answer.stream])
        raise error_from(answer.status, None, said.decode(errors="replace").strip())
    return answer


async def proxy(call: Call) -> Response:
    """Pass the request on to a service's endpoint, a pod, or a node's kubelet."""
    scheme, name, port = _split(call.target.name)
    namespace = call.target.namespace if call.served.type.namespaced else ""
    local = call.backend.local_handlers.get(call.key_of(name))
    if local is not None:
        return await local(msgspec.structs.replace(call.request, path=f"/{call.target.rest}", user=call.user))
    found = call.strategy.proxy_address(call.backend.store, namespace, name, port)
    scheme = scheme or found.scheme
    rest = quote(call.target.rest, safe="/:@!$&'()*+,;=~-._")
    context: Any = None
    if scheme == "https":
        context = call.backend.outbound.kubelet_context if found.is_kubelet else unverified()
    return await call.backend.outbound.fetch(
        call.request.method,
        f"{scheme}://{found.host}:{found.port}/{rest}",
        query=call.request.query,
        headers={**call.request.headers, NODE_HEADER: name} if found.is_kubelet else call.request.headers,
        body=call.request.body,
        context=context,
        streams=True,
    )


def _split(text: str) -> tuple[str, str, str]:
    """`[scheme:]name[:port]`."""
    parts = text.split(":")
    if len(parts) == 3 and parts[0] in ("http", "https", ""):
        return parts[0], parts[1], parts[2]
    if len(parts) == 2:
        return "", parts[0], parts[1]
    if len(parts) == 1:
        return "", text, ""
    raise BadRequest(f"invalid request {text!r}")
