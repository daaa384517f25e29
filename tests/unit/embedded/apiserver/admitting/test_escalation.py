"""Nobody gets more rights by writing roles, nor by naming objects of the cluster below a namespace."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from volcano.embedded.apiserver.server import ADMIN, ApiServer
from volcano.embedded.apiserver.store.memory_store import MemoryStore
from volcano.machinery.clock import VirtualClock
from volcano.machinery.transport import Request, User

API = "rbac.authorization.k8s.io"
ROLES = f"/apis/{API}/v1/clusterroles"
MERGE = "application/merge-patch+json"
EVERYTHING = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
WRITES_ROLES = {
    "verbs": ["create", "get", "patch", "update"],
    "apiGroups": [API],
    "resources": ["clusterroles", "clusterrolebindings"],
}
MAKER = User("maker", ("makers",))
OWNER = User("owner", ("owners",))
GATHERS = {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"any": "thing"}}]}}


@pytest.fixture
def server() -> ApiServer:
    return ApiServer(MemoryStore(), clock=VirtualClock())


async def send(server: ApiServer, user: User, method: str, path: str, body: Any = None, media: str = "") -> int:
    headers = {"content-type": media or "application/json"}
    raw = b"" if body is None else msgspec.json.encode(body)
    return (await server.handle(Request(method, path, headers=headers, body=raw, user=user))).status


async def prepare(server: ApiServer) -> None:
    """One user may write cluster roles; another may do everything in the namespace `red`."""
    for name in ("red", "blue"):
        assert await send(server, ADMIN, "POST", "/api/v1/namespaces", {"metadata": {"name": name}}) == 201
    assert await send(server, ADMIN, "POST", ROLES, {"metadata": {"name": "maker"}, "rules": [WRITES_ROLES]}) == 201
    assert await send(server, ADMIN, "POST", ROLES, {"metadata": {"name": "gathers"}, **GATHERS}) == 201
    assert await send(server, ADMIN, "POST", ROLES, {"metadata": {"name": "everything"}, "rules": [EVERYTHING]}) == 201
    for where, user, role in (
        ("clusterrolebindings", MAKER, {"kind": "ClusterRole", "name": "maker"}),
        ("namespaces/red/rolebindings", OWNER, {"kind": "Role", "name": "all"}),
    ):
        bound = {
            "metadata": {"name": user.name},
            "roleRef": {"apiGroup": API, **role},
            "subjects": [{"kind": "User", "apiGroup": API, "name": user.name}],
        }
        assert await send(server, ADMIN, "POST", f"/apis/{API}/v1/{where}", bound) == 201
    role = {"metadata": {"name": "all"}, "rules": [EVERYTHING]}
    assert await send(server, ADMIN, "POST", f"/apis/{API}/v1/namespaces/red/roles", role) == 201


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("maker", {"rules": [WRITES_ROLES, EVERYTHING]}),
        ("maker", GATHERS),
        ("gathers", {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"other": "thing"}}]}}),
        ("gathers", {"aggregationRule": None}),
        ("everything", {"metadata": {"labels": {"any": "thing"}}}),
        ("everything", {"metadata": {"labels": {f"{API}/aggregate-to-view": "true"}}}),
    ],
    ids=["rules", "gather", "gather others", "gather no more", "be gathered", "be gathered by view"],
)
async def test_who_writes_roles_gets_no_rights_by_it(server: ApiServer, name: str, change: dict):
    await prepare(server)

    assert await send(server, MAKER, "PATCH", f"{ROLES}/{name}", change, MERGE) == 403
    assert await send(server, MAKER, "GET", "/api/v1/secrets") == 403
    assert await send(server, ADMIN, "PATCH", f"{ROLES}/{name}", change, MERGE) == 200


async def test_a_new_role_that_gathers_needs_all_rights(server: ApiServer):
    await prepare(server)

    assert await send(server, MAKER, "POST", ROLES, {"metadata": {"name": "more"}, **GATHERS}) == 403
    assert await send(server, MAKER, "POST", ROLES, {"metadata": {"name": "same"}, "rules": [WRITES_ROLES]}) == 201
    labelled = {"metadata": {"labels": {"any": "thing"}}}
    assert await send(server, MAKER, "PATCH", f"{ROLES}/same", labelled, MERGE) == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/v1/namespaces/red/namespaces"),
        ("POST", "/api/v1/namespaces/red/namespaces"),
        ("DELETE", "/api/v1/namespaces/red/namespaces"),
        ("GET", "/api/v1/namespaces/red/namespaces/blue"),
        ("PATCH", "/api/v1/namespaces/red/namespaces/blue"),
        ("PATCH", "/api/v1/namespaces/red/namespaces/blue/status"),
        ("PUT", "/api/v1/namespaces/red/namespaces/blue/finalize"),
        ("DELETE", "/api/v1/namespaces/red/namespaces/blue"),
        ("GET", "/api/v1/watch/namespaces/red/namespaces"),
        ("GET", "/api/v1/namespaces/red/nodes"),
        ("GET", "/apis/metrics.k8s.io/v1beta1/namespaces/red/nodes"),
        ("POST", "/apis/authentication.k8s.io/v1/namespaces/red/tokenreviews"),
        ("POST", "/apis/authorization.k8s.io/v1/namespaces/red/subjectaccessreviews"),
    ],
)
async def test_objects_of_the_cluster_are_not_below_a_namespace(server: ApiServer, method: str, path: str):
    await prepare(server)

    assert await send(server, OWNER, method, path, {}, MERGE if method == "PATCH" else "") == 404
    assert await send(server, OWNER, "GET", "/api/v1/namespaces/red") == 200
    assert await send(server, OWNER, "GET", "/api/v1/namespaces/blue") == 403


async def test_a_group_cannot_be_impersonated_without_a_user(server: ApiServer):
    request = Request("GET", "/api/v1/pods", headers={"impersonate-group": "system:masters"}, user=ADMIN)

    assert (await server.handle(request)).status == 400
