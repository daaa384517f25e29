"""The sender: a pod that has finished when its eviction is announced is not deleted."""

from __future__ import annotations

import msgspec
import pytest

from volcano.api.core import Pod
from volcano.api.decode import decode_object
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
    """Answers with the pod as it has become."""

    def __init__(self, phase: str) -> None:
        self.phase = phase
        self.requests: list[Request] = []

    async def send(self, request: Request) -> Response:
        self.requests.append(request)
        return Response(200, body=msgspec.json.encode(a_pod(self.phase, "8")))

    async def close(self) -> None:
        return None


@pytest.mark.parametrize(("phase", "is_deleted"), [("Running", True), ("Succeeded", False), ("Failed", False)])
def test_a_pod_that_finished_before_it_is_evicted_is_not_deleted(phase: str, is_deleted: bool):
    server, failed = PodServer(phase), list[Unwritten]()

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

    deletions = [request for request in server.requests if request.method == "DELETE"]
    assert bool(deletions) is is_deleted
    assert all(b'"uid":"u"' in request.body and b"resourceVersion" not in request.body for request in deletions)
    assert [each.pod_uid for each in failed] == ([] if is_deleted else ["u"])
