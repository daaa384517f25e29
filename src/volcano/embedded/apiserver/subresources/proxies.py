"""Subresources answered elsewhere: a pod's log by its kubelet, `proxy` by the pod or by a service's endpoints."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote

import msgspec

from volcano.api.errors import BadRequest, MethodNotAllowed, NotFound, ServiceUnavailable, error_from
from volcano.api.meta import JSON
from volcano.embedded.apiserver.calls import Call
from volcano.embedded.apiserver.store.contract import ObjectKey
from volcano.embedded.apiserver.wire.kubelets import kubelet_address, only_container
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
    host, port, scheme = kubelet_address(call.backend.store, pod)
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
        # A kubelet explains itself in plain text; clients expect a Status.
        said = answer.body if answer.stream is None else b"".join([chunk async for chunk in answer.stream])
        raise error_from(answer.status, None, said.decode(errors="replace").strip())
    return answer


async def proxy(call: Call) -> Response:
    """Pass the request on to a service's endpoint, a pod, or a node's kubelet."""
    scheme, name, port = _split(call.target.name)
    local = call.backend.local_services.get((call.target.namespace, name))
    if local is not None and call.served.type.plural == "services":
        return await local(msgspec.structs.replace(call.request, path=f"/{call.target.rest}", user=call.user))
    finders = {"services": _service_address, "pods": _pod_address, "nodes": _node_address}
    host, found_port, found_scheme = finders[call.served.type.plural](call, name, port)
    scheme = scheme or found_scheme
    rest = quote(call.target.rest, safe="/:@!$&'()*+,;=~-._")
    context: Any = None
    if scheme == "https":
        is_node = call.served.type.plural == "nodes"
        context = call.backend.outbound.kubelet_context if is_node else unverified()
    return await call.backend.outbound.fetch(
        call.request.method,
        f"{scheme}://{host}:{found_port}/{rest}",
        query=call.request.query,
        headers=call.request.headers,
        body=call.request.body,
        context=context,
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


def _object(call: Call, resource: str, name: str) -> JSON:
    namespace = call.target.namespace if call.served.type.namespaced else ""
    stored = call.backend.store.find(ObjectKey(resource, namespace, name))
    if stored is None:
        raise NotFound.of(resource, name)
    found: JSON = msgspec.json.decode(stored.raw)
    return found


def _pod_address(call: Call, name: str, port: str) -> tuple[str, int, str]:
    pod = _object(call, "pods", name)
    address = (pod.get("status") or {}).get("podIP")
    if not address:
        raise BadRequest("address not allowed")
    if not port:
        ports = [p for c in pod["spec"].get("containers") or [] for p in c.get("ports") or []]
        port = str(ports[0].get("containerPort")) if ports else "80"
    if not port.isdigit():
        named = [p for c in pod["spec"].get("containers") or [] for p in c.get("ports") or [] if p.get("name") == port]
        if not named:
            raise BadRequest(f"no port {port!r} in pod {name!r}")
        port = str(named[0].get("containerPort"))
    return address, int(port), "http"


def _node_address(call: Call, name: str, port: str) -> tuple[str, int, str]:
    _object(call, "nodes", name)
    host, found, scheme = kubelet_address(call.backend.store, {"metadata": {"name": name}, "spec": {"nodeName": name}})
    return host, int(port) if port.isdigit() else found, scheme


def _service_address(call: Call, name: str, port: str) -> tuple[str, int, str]:
    """The first ready address of the service's endpoints."""
    service = _object(call, "services", name)
    ports = (service.get("spec") or {}).get("ports") or []
    wanted = next((p for p in ports if port in ("", p.get("name"), str(p.get("port")))), None)
    if wanted is None:
        raise ServiceUnavailable(f'no service port "{port}" found for service "{name}"')
    stored = call.backend.store.find(ObjectKey("endpoints", call.target.namespace, name))
    endpoints: JSON = msgspec.json.decode(stored.raw) if stored else {}
    for subset in endpoints.get("subsets") or []:
        match = next(
            (p for p in subset.get("ports") or [] if (p.get("name") or "") == (wanted.get("name") or "")), None
        )
        if match and subset.get("addresses"):
            scheme = "https" if (wanted.get("appProtocol") or "").endswith("https") else "http"
            return subset["addresses"][0]["ip"], int(match["port"]), scheme
    raise ServiceUnavailable(f'no endpoints available for service "{name}"')
