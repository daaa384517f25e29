"""Things go wrong on a real API server: leaders are killed, servers restart, storage stops, connections break."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.running_server import Client
from tests.stories.builders import a_job, a_task
from volcano.api.core import Pod
from volcano.machinery.client import Client as TypedClient
from volcano.machinery.clock import SystemClock
from volcano.machinery.http_transport import HttpTransport
from volcano.machinery.kubeconfig import load_endpoint

from .components import Components, Process, components, wait_for
from .control_plane import ControlPlane
from .fixtures import WITHOUT_PODS
from .ledger import binds, creations
from .proxy import Proxy
from .real_system import RealSystem, real_system

LEASE_SECONDS = 15
LEASES = "/apis/coordination.k8s.io/v1/namespaces/volcano-system/leases"
LONG = timedelta(seconds=100)

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def own_plane(
    programs: Path, audit_logs: list[Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """A control plane of our own, since we are about to break it."""
    with ControlPlane(tmp_path_factory.mktemp("faulty"), programs, audits=True) as plane:
        audit_logs.append(plane.audit_log)
        yield plane


@pytest.fixture(scope="module")
def own_api(own_plane: ControlPlane) -> Client:
    from volcano.install.installation import installation
    from volcano.install.values import Values

    from .components import apply

    api = Client(own_plane.kubeconfig)
    apply(api, installation(Values({**WITHOUT_PODS, "admission.mode": "none"})))
    return api


@pytest.fixture(scope="module")
def proxy(own_plane: ControlPlane) -> Iterator[Proxy]:
    with Proxy(own_plane).running() as found:
        yield found


@pytest.fixture(scope="module")
def electing(
    own_plane: ControlPlane, own_api: Client, proxy: Proxy, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Components]:
    """Two schedulers and two controller managers with the usual times, and 20 nodes, all through the proxy."""
    with components(own_plane, own_api, tmp_path_factory.mktemp("electing")) as found:
        found.nodes("sim", 20, server=proxy.url)
        for _ in range(2):
            found.scheduler(elects=True, server=proxy.url)
            found.controllers(elects=True, server=proxy.url)
        wait_for(lambda: own_api.get("/apis/scheduling.volcano.sh/v1beta1/queues/default").status == 200)
        yield found


@pytest.fixture
async def world(
    own_plane: ControlPlane, own_api: Client, electing: Components, request: pytest.FixtureRequest
) -> AsyncIterator[RealSystem]:
    name = f"f-{abs(hash(request.node.name)) % 10**8}"
    assert own_api.create("/api/v1/namespaces", {"metadata": {"name": name}}).status == 201
    client = TypedClient(HttpTransport(load_endpoint(own_plane.kubeconfig), SystemClock()), agent="tests")
    async with real_system(client, name) as found:
        yield found
        await found.end_jobs(LONG)
    await client.close()


def leader(api: Client, lease: str, *, but: str = "") -> str:
    """Who holds a lease; another than `but`."""

    def holder() -> str:
        identity = api.get(f"{LEASES}/{lease}").body.get("spec", {}).get("holderIdentity", "")
        return identity if identity != but else ""

    return wait_for(holder, within=60, why=f"somebody else holds {lease}")


def process_of(running: list[Process], identity: str) -> Process:
    """By what it said when it took the lease."""
    return wait_for(lambda: next((each for each in running if identity in each.log), None))


async def submit(world: RealSystem, prefix: str, jobs: int, size: int, *, lasts: str = "1s") -> list[str]:
    names = [f"{prefix}-{n}" for n in range(jobs)]
    for name in names:
        await world.apply(a_job(name, a_task(replicas=size, lasts=lasts)))
    return names


async def all_complete(world: RealSystem, names: list[str]) -> None:
    await world.until(lambda: all(world.phase(name) == "Completed" for name in names), within=LONG)


@pytest.mark.parametrize("lease", ["volcano", "vc-controller-manager"])
async def test_another_takes_over_when_the_leader_is_killed(
    world: RealSystem, electing: Components, own_api: Client, own_plane: ControlPlane, lease: str
):
    command = "scheduler" if lease == "volcano" else "controller-manager"
    candidates = [each for each in electing.running if each.words[0] == command]
    first = leader(own_api, lease)
    made: dict[str, set[str]] = {}
    world.mirror.listen(Pod, lambda change: made.setdefault(change.object.name, set()).add(change.object.uid))
    names = await submit(world, "before", 15, 4)
    clock = SystemClock()

    process_of(candidates, first).kill()
    killed = clock.monotonic()
    names += await submit(world, "after", 5, 4)
    await asyncio.to_thread(leader, own_api, lease, but=first)
    took = clock.monotonic() - killed
    await all_complete(world, names)

    assert took < LEASE_SECONDS + 10  # the lease, one look every two seconds, and a machine that is busy
    assert set(binds(own_plane, world.namespace).values()) == {1}
    assert set(creations(own_plane, world.namespace).values()) == {1}
    assert len(made) == 80
    assert all(len(uids) == 1 for uids in made.values())


async def test_the_api_server_restarts_under_load(world: RealSystem, own_plane: ControlPlane):
    names = await submit(world, "j", 10, 4, lasts="3s")
    await asyncio.to_thread(own_plane.restart_apiserver)
    names += await submit(world, "k", 5, 4)

    await all_complete(world, names)

    assert set(binds(own_plane, world.namespace).values()) == {1}
    assert set(creations(own_plane, world.namespace).values()) == {1}


async def test_storage_stands_still_for_twenty_seconds(world: RealSystem, own_plane: ControlPlane, own_api: Client):
    names = await submit(world, "j", 10, 4, lasts="3s")
    own_plane.signal("etcd", signal.SIGSTOP)
    await world.clock.sleep(timedelta(seconds=20))
    own_plane.signal("etcd", signal.SIGCONT)
    await asyncio.to_thread(wait_for, lambda: own_api.get("/readyz").status == 200)
    names += await submit(world, "k", 5, 4)

    await all_complete(world, names)

    assert set(binds(own_plane, world.namespace).values()) == {1}
    assert set(creations(own_plane, world.namespace).values()) == {1}


async def test_connections_are_cut_in_the_middle_of_watches(world: RealSystem, own_plane: ControlPlane, proxy: Proxy):
    before = proxy.cut
    names = []
    for round_ in range(4):
        names += await submit(world, f"r{round_}", 4, 4)
        proxy.cut_all()
        await world.clock.sleep(timedelta(seconds=1))

    await all_complete(world, names)

    assert proxy.cut > before
    assert set(binds(own_plane, world.namespace).values()) == {1}


async def test_the_server_answers_with_errors(world: RealSystem, own_plane: ControlPlane, proxy: Proxy):
    proxy.failing = {429: 0.1, 500: 0.05, 503: 0.05}
    try:
        names = await submit(world, "j", 10, 4)
        await world.until(lambda: proxy.injected > 50, within=LONG)
        await all_complete(world, names)
    finally:
        proxy.failing = {}

    assert set(binds(own_plane, world.namespace).values()) == {1}
    assert all(pod.status.phase == "Succeeded" for pod in world.mirror.all(Pod))
