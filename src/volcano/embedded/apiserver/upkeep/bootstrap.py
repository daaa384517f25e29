"""What every cluster has from the start: system namespaces, priority classes, roles and bindings, Volcano's CRDs.

Everything is an ordinary request of system:admin; objects that exist are left as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from volcano.api.errors import ApiError, error_from
from volcano.api.meta import JSON
from volcano.embedded.apiserver.access.rbac_defaults import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES
from volcano.machinery.transport import Handler, Request, User

ADMIN: Final = User("system:admin", ("system:masters", "system:authenticated"))

NAMESPACES: Final = ("default", "kube-system", "kube-public", "kube-node-lease", "volcano-system")

PRIORITY_CLASSES: Final[Sequence[JSON]] = (
    {
        "metadata": {"name": "system-cluster-critical"},
        "value": 2_000_000_000,
        "description": (
            "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary."
        ),
    },
    {
        "metadata": {"name": "system-node-critical"},
        "value": 2_000_001_000,
        "description": "Used for system critical pods that must not be moved from their current node.",
    },
)

METRICS_API: Final[JSON] = {
    "metadata": {"name": "v1beta1.metrics.k8s.io"},
    "spec": {"group": "metrics.k8s.io", "version": "v1beta1", "groupPriorityMinimum": 100, "versionPriority": 100},
}
"""Answered by pages.resource_metrics; installers look for it, and metrics-server's own manifest may replace it."""


async def bootstrap(handle: Handler, crds: Iterable[JSON] = ()) -> None:
    """Create what is missing."""
    for name in NAMESPACES:
        await ensure(handle, "/api/v1/namespaces", {"metadata": {"name": name}})
    for priority in PRIORITY_CLASSES:
        await ensure(handle, "/apis/scheduling.k8s.io/v1/priorityclasses", priority)
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    for role in CLUSTER_ROLES:
        await ensure(handle, f"{rbac}/clusterroles", role)
    for binding in CLUSTER_ROLE_BINDINGS:
        await ensure(handle, f"{rbac}/clusterrolebindings", binding)
    await ensure(handle, "/apis/apiregistration.k8s.io/v1/apiservices", METRICS_API)
    for crd in crds:
        await ensure(handle, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd, replaces_spec=True)


async def ensure(handle: Handler, path: str, obj: JSON, *, replaces_spec: bool = False) -> None:
    """Create, unless it exists; `replaces_spec` brings the spec of an existing one up to date."""
    name = obj["metadata"]["name"]
    headers = {"content-type": "application/json", "user-agent": "volcano-bootstrap"}
    found = await handle(Request("GET", f"{path}/{name}", headers=headers, user=ADMIN))
    if found.status == 404:
        made = await handle(Request("POST", path, headers=headers, body=msgspec.json.encode(obj), user=ADMIN))
        if made.status not in (201, 409):
            raise _error(made.status, made.body)
        return
    if found.status != 200:
        raise _error(found.status, found.body)
    current = msgspec.json.decode(found.body)
    if replaces_spec and not _has(current.get("spec"), obj.get("spec")):
        current["spec"] = obj["spec"]
        put = Request("PUT", f"{path}/{name}", headers=headers, body=msgspec.json.encode(current), user=ADMIN)
        answer = await handle(put)
        if answer.status != 200:
            raise _error(answer.status, answer.body)


def _has(found: Any, wanted: Any) -> bool:
    """Whether every wanted field has its value; defaults may add more fields."""
    if found == wanted:
        return True
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(_has(found.get(key), value) for key, value in wanted.items())
    if isinstance(wanted, list):
        return isinstance(found, list) and len(found) == len(wanted) and all(map(_has, found, wanted))
    return False


def _error(status: int, body: bytes) -> ApiError:
    return error_from(status, msgspec.json.decode(body))
