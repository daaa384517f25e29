"""Endpoints and addresses of pods do not lead the server to services of the machine."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from volcano.api.pods.addresses import is_address, is_of_the_machine
from volcano.embedded.apiserver.server import ADMIN, ApiServer
from volcano.embedded.apiserver.store.memory_store import MemoryStore
from volcano.machinery.clock import VirtualClock
from volcano.machinery.transport import Request, User

API = "rbac.authorization.k8s.io"
EDITOR = User("editor", ("editors",))
HERE = "/api/v1/namespaces/red"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/red/endpointslices"
MERGE = "application/merge-patch+json"
OF_THE_MACHINE = [
    "127.0.0.1",
    "127.1.2.3",
    "::1",
    "::ffff:127.0.0.1",
    "169.254.169.254",
    "0.0.0.0",
    "fe80::1",
    "224.0.0.1",
]


@pytest.mark.parametrize("address", OF_THE_MACHINE)
def test_addresses_of_the_machine(address: str):
    assert is_of_the_machine(address)


@pytest.mark.parametrize("address", ["10.64.0.3", "127.64.0.5", "192.168.1.1", "2001:db8::1"])
def test_addresses_of_pods(address: str):
    assert is_address(address) and not is_of_the_machine(address)


@pytest.fixture
async def server() -> ApiServer:
    """A server on which the editor may do everything in the namespace `red`."""
    server = ApiServer(MemoryStore(), clock=VirtualClock())
    everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
    bound = {
        "metadata": {"name": "all"},
        "roleRef": {"apiGroup": API, "kind": "Role", "name": "all"},
        "subjects": [{"kind": "User", "apiGroup": API, "name": EDITOR.name}],
    }
    for path, body in (
        ("/api/v1/namespaces", {"metadata": {"name": "red"}}),
        (f"/apis/{API}/v1/namespaces/red/roles", {"metadata": {"name": "all"}, "rules": [everything]}),
        (f"/apis/{API}/v1/namespaces/red/rolebindings", bound),
    ):
        assert await send(server, ADMIN, "POST", path, body) == 201
    return server


async def send(
    server: ApiServer, user: User, method: str, path: str, body: Any = None, media: str = "application/json"
) -> int:
    raw = b"" if body is None else msgspec.json.encode(body)
    return (await server.handle(Request(method, path, headers={"content-type": media}, body=raw, user=user))).status


def endpoints(address: str, field: str = "addresses") -> dict[str, Any]:
    return {"metadata": {"name": "e"}, "subsets": [{field: [{"ip": address}], "ports": [{"port": 80}]}]}


def endpoint_slice(address: str) -> dict[str, Any]:
    return {"metadata": {"name": "e"}, "addressType": "IPv4", "endpoints": [{"addresses": [address]}], "ports": []}


@pytest.mark.parametrize("address", ["127.0.0.1", "169.254.169.254"])
async def test_users_do_not_write_them_in_any_way(server: ApiServer, address: str):
    assert await send(server, EDITOR, "POST", f"{HERE}/endpoints", endpoints(address)) == 403
    assert await send(server, EDITOR, "POST", f"{HERE}/endpoints", endpoints(address, "notReadyAddresses")) == 403
    assert await send(server, EDITOR, "POST", SLICES, endpoint_slice(address)) == 403
    assert await send(server, EDITOR, "POST", f"{HERE}/endpoints", endpoints("10.0.0.1")) == 201
    changed = endpoints(address)
    assert await send(server, EDITOR, "PATCH", f"{HERE}/endpoints/e", changed, MERGE) == 403
    assert await send(server, EDITOR, "PUT", f"{HERE}/endpoints/e", changed) == 403


async def test_controllers_do_and_others_may_keep_them(server: ApiServer):
    assert await send(server, ADMIN, "POST", f"{HERE}/endpoints", endpoints("127.0.0.1")) == 201
    labelled = {"metadata": {"labels": {"a": "b"}}}
    assert await send(server, EDITOR, "PATCH", f"{HERE}/endpoints/e", labelled, MERGE) == 200


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "localhost", "x@127.0.0.1", "169.254.169.254", "0.0.0.0", "10.0.0.1/.."]
)
async def test_the_proxy_does_not_follow_a_status_to_the_machine(server: ApiServer, address: str):
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "busybox"}]}}
    assert await send(
        server, ADMIN, "POST", "/api/v1/namespaces/red/serviceaccounts", {"metadata": {"name": "default"}}
    )
    assert await send(server, ADMIN, "POST", f"{HERE}/pods", pod) == 201
    reported = {"status": {"podIP": address, "podIPs": [{"ip": address}]}}
    await send(server, ADMIN, "PATCH", f"{HERE}/pods/p/status", reported, MERGE)

    assert await send(server, EDITOR, "GET", f"{HERE}/pods/p:80/proxy/x") == 400
