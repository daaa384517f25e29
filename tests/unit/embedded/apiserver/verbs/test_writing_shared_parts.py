"""An update that shares parts with the stored object gives the same bytes as one that decodes it twice."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from volcano.api.meta import JSON
from volcano.embedded.apiserver.kinds.strategy import Strategy
from volcano.embedded.apiserver.server import ADMIN, ApiServer
from volcano.embedded.apiserver.store.memory_store import MemoryStore
from volcano.machinery.admission import Attributes
from volcano.machinery.clock import VirtualClock, run_virtually
from volcano.machinery.ids import SeededIds
from volcano.machinery.transport import Request

POD = "/api/v1/namespaces/default/pods/a"
GROUP = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups/a"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/default/leases/a"
JSON_TYPE, MERGE = "application/json", "application/merge-patch+json"
STRATEGIC, OPERATIONS = "application/strategic-merge-patch+json", "application/json-patch+json"
NAMED: JSON = {"metadata": {"name": "a", "labels": {"a": "b"}}}
CONTAINER: JSON = {"name": "main", "image": "any", "resources": {"requests": {"cpu": "1000m"}}}
READY: JSON = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}

WRITES: list[tuple[str, str, str, Any]] = [
    ("POST", POD[:-2], JSON_TYPE, {**NAMED, "spec": {"containers": [CONTAINER]}}),
    ("PATCH", POD, MERGE, {"metadata": {"annotations": {"a": "b"}}}),
    ("POST", f"{POD}/binding", JSON_TYPE, {"metadata": {"annotations": {"c": "d"}}, "target": {"name": "node"}}),
    ("PATCH", f"{POD}/status", STRATEGIC, {"status": {"phase": "Running", "conditions": [READY]}}),
    ("PATCH", f"{POD}/status", MERGE, {"status": {"unknown": 1}, "spec": {"nodeName": "other"}}),
    ("PATCH", POD, STRATEGIC, {"spec": {"containers": [{"name": "main", "image": "other"}]}}),
    ("PATCH", POD, MERGE, {"spec": {"hostNetwork": "yes"}}),
    ("PATCH", POD, MERGE, {"spec": None}),
    ("PATCH", POD, OPERATIONS, [{"op": "remove", "path": "/metadata/annotations/a"}]),
    ("PATCH", POD, MERGE, {}),
    ("POST", GROUP[:-2], JSON_TYPE, {**NAMED, "spec": {"minMember": 1, "queue": "default"}}),
    ("PATCH", GROUP, MERGE, {"status": {"phase": "Inqueue", "conditions": [{**READY, "transitionID": "a"}]}}),
    ("PATCH", GROUP, MERGE, {"spec": {"minMember": -1}}),
    ("PATCH", GROUP, MERGE, {"spec": {"unknown": {"a": None}}, "status": None}),
    ("POST", LEASE[:-2], JSON_TYPE, {**NAMED, "spec": {"holderIdentity": "a"}}),
    ("PATCH", LEASE, MERGE, {"spec": {"holderIdentity": "b", "renewTime": "2026-01-01T00:00:00.000001Z"}}),
    ("PUT", LEASE, JSON_TYPE, {**NAMED, "spec": {"holderIdentity": "c", "renewTime": None}}),
]


class Everything:
    """Admits every write as it is."""

    async def mutate(self, attributes: Attributes) -> tuple[JSON | None, list[str]]:
        return attributes.object, []

    compared: frozenset[str] = frozenset()

    async def validate(self, attributes: Attributes) -> list[str]:
        return []


def answers() -> list[tuple[int, str, bytes]]:
    async def main() -> list[tuple[int, str, bytes]]:
        server = ApiServer(MemoryStore(), clock=VirtualClock(), admission=Everything(), ids=SeededIds())
        await server.start()
        found = []
        for method, path, media, body in WRITES:
            headers = {"content-type": media, "user-agent": f"agent-of-{media}"}
            request = Request(method, path, (), headers, msgspec.json.encode(body), ADMIN)
            response = await server.handle(request)
            stored = await server.handle(Request("GET", path.removesuffix("/binding"), user=ADMIN))
            found.append((response.status, response.headers.get("warning", ""), response.body + stored.body))
        await server.close()
        return found

    return run_virtually(main())


def test_sharing_parts_changes_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    shared = answers()
    for kind in Strategy.__subclasses__():
        for each in (kind, *kind.__subclasses__()):
            monkeypatch.setattr(each, "keeps_other_parts", False)

    assert shared == answers()
    assert [status for status, _, _ in shared] == [
        201, 200, 201, 200, 200, 200, 400, 422, 200, 200, 201, 200, 422, 200, 201, 200, 200
    ]  # fmt: skip
