"""The sender: a pod that has finished by the time at which its deletion arrives is not deleted."""

from __future__ import annotations

import msgspec
import pytest

from volcano.api.core import Pod
from volcano.api.decode import decode_object
from volcano.api.errors import Conflict
from volcano.machinery.client import Client
from volcano.machinery.clock import VirtualClock, run_virtually
from volcano.machinery.plan import Patch, ref
from volcano.machinery.transport import Request, Response
from volcano.machinery.world import Mirror
from volcano.scheduler.cache import PendingChanges
from volcano.scheduler.commit import Commitment, EvictionPlan, Unwritten
from volcano.scheduler.service.cycle_metrics import SchedulerMetrics
from volcano.scheduler.service.sender import Sender


def a_pod(phase: str, version: str) -> dict:
    metadata = {"name": "p", "namespace": "ns", "uid": "u", "resourceVersion": version}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": {"phase": phase}}


class PodServer:
    """Answers with the pod as it has become; before the first deletion arrives, it becomes `then`."""

    def __init__(self, phase: str, then: str = "") -> None:
        self.phase, self.then, self.version = phase, then, 8
        self.requests: list[Request] = []

    async def send(self, request: Request) -> Response:
        self.requests.append(request)
        if request.method == "DELETE":
            if self.then:
                self.phase, self.then, self.version = self.then, "", self.version + 1
            wanted = msgspec.json.decode(request.body)["preconditions"].get("resourceVersion")
            if wanted not in (None, str(self.version)):
                return Response(409, body=msgspec.json.encode(Conflict("it has changed").status()))
        pod = a_pod(self.phase, str(self.version))
        listed = {"metadata": {"resourceVersion": "9"}, "items": [pod]}
        return Response(200, body=msgspec.json.encode(listed if request.method == "GET" else pod))

    async def close(self) -> None:
        return None


def evict(server: PodServer) -> list[Unwritten]:
    failed = list[Unwritten]()

    async def main() -> None:
        mirror, pod = Mirror(), decode_object(Pod, a_pod("Running", "7"))
        mirror.put(pod)
        sender = Sender(
            Client(server),
            VirtualClock(),
            mirror=mirror,
            pending=PendingChanges(),
            metrics=SchedulerMetrics(),
            on_failure=failed.append,
        )
        announce = (Patch(ref(pod), {"status": {}}, kind="strategic", subresource="status"),)
        sender.send(Commitment(evictions=(EvictionPlan(pod, "u", announce),)))
        await sender.idle()

    run_virtually(main())
    return failed


@pytest.mark.parametrize(("phase", "is_deleted"), [("Running", True), ("Succeeded", False), ("Failed", False)])
def test_a_pod_that_finished_before_it_is_evicted_is_not_deleted(phase: str, is_deleted: bool):
    server = PodServer(phase)

    failed = evict(server)

    deletions = [request for request in server.requests if request.method == "DELETE"]
    assert bool(deletions) is is_deleted
    assert all(b'"uid":"u"' in request.body for request in deletions)
    assert [each.pod_uid for each in failed] == ([] if is_deleted else ["u"])


@pytest.mark.parametrize(("then", "deletions"), [("Succeeded", 1), ("Running", 2)])
def test_a_pod_that_finishes_before_its_deletion_arrives_is_not_deleted(then: str, deletions: int):
    server = PodServer("Running", then)

    failed = evict(server)

    sent = [request for request in server.requests if request.method == "DELETE"]
    assert len(sent) == deletions  # the first is refused, since the pod has changed; a pod that still runs is evicted
    assert [each.pod_uid for each in failed] == (["u"] if then == "Succeeded" else [])
