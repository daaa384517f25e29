"""The Service `kubernetes` with this server's endpoint, and the ConfigMap by which extension servers know it.

Written as system:admin when the server knows where it listens.
"""

from __future__ import annotations

import ipaddress
import logging
from typing import Final

import msgspec

from volcano.api.errors import ApiError, error_from
from volcano.api.meta import JSON
from volcano.api.service_network import API_SERVER_ADDRESS, API_SERVER_PORT, SERVICE_NAME_LABEL
from volcano.embedded.apiserver.access.rbac_defaults import READ
from volcano.embedded.apiserver.upkeep.bootstrap import ADMIN, ensure
from volcano.embedded.apiserver.wire.extension_client import (
    EXTRA_PREFIX,
    FRONT_PROXY_NAME,
    GROUP_HEADER,
    UID_HEADER,
    USER_HEADER,
)
from volcano.machinery.transport import Handler, Request

log = logging.getLogger(__name__)
NAME: Final = "kubernetes"
_CORE: Final = "/api/v1/namespaces/default"
_SYSTEM: Final = "/api/v1/namespaces/kube-system"
_RBAC: Final = "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system"
_SLICES: Final = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"


AUTHENTICATION: Final = "extension-apiserver-authentication"


async def publish(handle: Handler, host: str, port: int, authority: bytes) -> None:
    """Create what is missing, and update the endpoint and the CA. A failure is logged: nothing else depends on it."""
    try:
        await ensure(handle, f"{_CORE}/services", _service(port), replaces_spec=True)
        await _put(handle, f"{_CORE}/endpoints", _endpoints(host, port))
        await _put(handle, _SLICES, _slice(host, port))
        await _put(handle, f"{_SYSTEM}/configmaps", _authentication(authority))
        await ensure(handle, f"{_RBAC}/roles", _AUTHENTICATION_READER)
    except ApiError as error:
        log.warning("the Service kubernetes or the ConfigMap of extension servers cannot be kept: %s", error)


def _service(port: int) -> JSON:
    labels = {"component": "apiserver", "provider": "kubernetes"}
    ports = [{"name": "https", "port": API_SERVER_PORT, "protocol": "TCP", "targetPort": port}]
    return {
        "metadata": {"name": NAME, "namespace": "default", "labels": labels},
        "spec": {"type": "ClusterIP", "clusterIP": API_SERVER_ADDRESS, "sessionAffinity": "None", "ports": ports},
    }


def _endpoints(host: str, port: int) -> JSON:
    labels = {"endpointslice.kubernetes.io/skip-mirror": "true"}
    subset = {"addresses": [{"ip": host}], "ports": [{"name": "https", "port": port, "protocol": "TCP"}]}
    return {"metadata": {"name": NAME, "namespace": "default", "labels": labels}, "subsets": [subset]}


def _slice(host: str, port: int) -> JSON:
    return {
        "metadata": {"name": NAME, "namespace": "default", "labels": {SERVICE_NAME_LABEL: NAME}},
        "addressType": f"IPv{ipaddress.ip_address(host).version}",
        "endpoints": [{"addresses": [host], "conditions": {"ready": True}}],
        "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
    }


_AUTHENTICATION_READER: Final[JSON] = {
    "metadata": {"name": f"{AUTHENTICATION}-reader", "namespace": "kube-system"},
    "rules": [
        {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [AUTHENTICATION], "verbs": list(READ)},
    ],
}


def _authentication(authority: bytes) -> JSON:
    """How an extension server recognises this server, and the callers that this server names in headers."""
    ca = authority.decode()
    data = {
        "client-ca-file": ca,
        "requestheader-allowed-names": f'["{FRONT_PROXY_NAME}"]',
        "requestheader-client-ca-file": ca,
        "requestheader-extra-headers-prefix": f'["{EXTRA_PREFIX}"]',
        "requestheader-group-headers": f'["{GROUP_HEADER}"]',
        "requestheader-uid-headers": f'["{UID_HEADER}"]',
        "requestheader-username-headers": f'["{USER_HEADER}"]',
    }
    return {"metadata": {"name": AUTHENTICATION, "namespace": "kube-system"}, "data": data}


async def _put(handle: Handler, path: str, wanted: JSON) -> None:
    """Create the object, or update it: the port may differ from the last start's."""
    name = wanted["metadata"]["name"]
    await ensure(handle, path, wanted)
    headers = {"content-type": "application/merge-patch+json", "user-agent": "volcano-apiserver"}
    changes = {name: value for name, value in wanted.items() if name not in ("metadata", "addressType")}
    patch = Request("PATCH", f"{path}/{name}", headers=headers, body=msgspec.json.encode(changes), user=ADMIN)
    answer = await handle(patch)
    if answer.status != 200:
        raise error_from(answer.status, msgspec.json.decode(answer.body))
