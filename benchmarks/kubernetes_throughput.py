"""Throughput and API requests per pod on a real kube-apiserver with simulated nodes.

    python benchmarks/kubernetes_throughput.py [--nodes 1000] [--shapes 1000x1,100x10,10x100,1x1000] [--repeat 1]
        [--components apart|manager|null|bare] [--profile FILE]

Each shape is jobs × pods, every job a gang. Pods per second count from the first submit to the last bind; requests
are the difference of the server's own apiserver_request_total once all jobs run, events and leases apart: those of
scheduler and controllers, and in brackets with the submits and the nodes' own. `--components` chooses who makes the
writes: scheduler and controllers as two processes or as one (`volcano manager`), or the null ones of
kubernetes_null.py, with the nodes and kube-controller-manager (null) or with the API server alone (bare).
Needs the programs of `make kubernetes`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.kubernetes_null import NullComponents

from tests.kubernetes.components import Components, apply
from tests.kubernetes.control_plane import ControlPlane, binaries
from tests.running_server import Client as PlainClient
from volcano.api.batch import Job
from volcano.api.core import Namespace, Pod
from volcano.api.errors import ApiError
from volcano.api.meta import Key
from volcano.api.scheduling import Queue
from volcano.api.scheme import find_resource_type, resource_type
from volcano.install.installation import installation
from volcano.install.values import Values
from volcano.machinery.client import Client
from volcano.machinery.clock import SystemClock
from volcano.machinery.http_transport import HttpTransport
from volcano.machinery.informer import Informer
from volcano.machinery.kubeconfig import load_endpoint
from volcano.machinery.transport import Request
from volcano.machinery.world import Change, Mirror

SUBMITTERS = 32
RESTING = 30  # requests in two seconds
LINE = re.compile(r"^apiserver_request_total\{(.*)\} (\S+)$", re.M)
APART = {"events", "leases", "nodes", "endpointslices", "configmaps", "serviceaccounts", "namespaces"}
"""Not the jobs' doing: events (counted on their own), heartbeats, and what makes a namespace."""


def job(name: str, size: int) -> dict:
    container = {"name": "c", "image": "any", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}
    task = {"name": "t", "replicas": size, "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}
    spec = {"minAvailable": size, "schedulerName": "volcano", "queue": "default", "tasks": [task]}
    return {"metadata": {"name": name, "namespace": "bench"}, "spec": spec}


async def requests_so_far(client: Client) -> Counter[str]:
    text = (await client.raw(Request("GET", "/metrics"))).body.decode()
    found: Counter[str] = Counter()
    for labels, value in LINE.findall(text):
        fields = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        if fields["verb"] in ("WATCH", "LIST", "CONNECT") or not fields["resource"]:
            continue
        where = fields["resource"] + (f"/{fields['subresource']}" if fields.get("subresource") else "")
        found[f"{fields['verb']} {where}"] += int(float(value))
    return found


async def until(condition, *, within: float, why: str) -> None:
    end = time.monotonic() + within
    while not condition():
        if time.monotonic() > end:
            raise SystemExit(f"not within {within:.0f} s: {why}")
        await asyncio.sleep(0.01)


def processor_seconds(pids: dict[str, int]) -> Counter[str]:
    """What each process has used so far."""
    ticks = os.sysconf("SC_CLK_TCK")
    found: Counter[str] = Counter()
    for name, pid in pids.items():
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        found[name] = (int(fields[11]) + int(fields[12])) / ticks  # type: ignore[assignment]
    return found


class Measured(NamedTuple):
    """Of one shape."""

    pods_per_second: float
    requests: Counter[str]
    cpu_to_bound: Counter[str]
    """CPU seconds by process, from the first submit to the last bind."""


async def shape(
    client: Client, mirror: Mirror, jobs: int, size: int, pids: dict[str, int], null: NullComponents | None
) -> Measured:
    before, used = await requests_so_far(client), processor_seconds(pids)
    waiting = iter(range(jobs))
    begun = time.monotonic()
    made: list[asyncio.Task[None]] = []

    async def submit() -> None:
        for number in waiting:
            created = await client.create(resource_type(Job), job(f"j-{number}", size))
            if null is not None:
                made.append(asyncio.ensure_future(null.run(created)))

    total = jobs * size
    bound: dict[str, float] = {}

    def count(change: Change[Pod]) -> None:
        if change.new is not None and change.new.spec.node_name:
            bound.setdefault(change.new.name, time.monotonic())

    mirror.listen(Pod, count)
    await asyncio.gather(*(submit() for _ in range(min(SUBMITTERS, jobs))))
    await until(lambda: len(bound) >= total, within=300, why=f"{total} pods are bound")
    cpu = processor_seconds(pids)
    cpu.subtract(used)
    rate = total / (max(bound.values()) - begun)
    await asyncio.gather(*made)
    if null is None:
        while sum(each.status.running == size for each in (await client.list(Job, "bench")).items) < jobs:  # noqa: ASYNC110
            await asyncio.sleep(1)
    await asyncio.sleep(3)
    asked = await requests_so_far(client) - before
    await delete_all(client, mirror, jobs, nobody_ends_pods="agent" not in pids)
    return Measured(rate, asked, cpu)


async def delete_all(client: Client, mirror: Mirror, jobs: int, *, nobody_ends_pods: bool) -> None:
    doomed = [(resource_type(Job), Key("bench", f"j-{number}")) for number in range(jobs)]
    options: dict = {"propagationPolicy": "Background"}
    if nobody_ends_pods:
        doomed += [(resource_type(Pod), pod.key) for pod in mirror.all(Pod)]
        options["gracePeriodSeconds"] = 0
    waiting = iter(doomed)

    async def delete() -> None:
        for kind, key in waiting:
            await client.delete(kind, key, options)

    await asyncio.gather(*(delete() for _ in range(SUBMITTERS)))
    await until(lambda: not mirror.all(Pod), within=300, why="everything is deleted")


@contextlib.contextmanager
def components(plane: ControlPlane, folder: Path, nodes: int, who: str) -> Iterator[dict[str, int]]:
    """Each with its service account's token and the chart's rights, as in a cluster; the agent is the nodes' own."""
    api = PlainClient(plane.kubeconfig)
    chosen = {f"{name}.replicas": 0 for name in ("scheduler", "controllers", "manager")}
    chosen |= {"admission.mode": "none", "manager.enabled": who == "manager"}
    apply(api, installation(Values(chosen)))
    accounts = Components(plane, api, folder / "accounts")
    agent = [
        "agent", f"--kubeconfig={accounts.administrator(plane.url)}", f"--data-dir={folder}/agent",
        f"--simulated-nodes={nodes}", "--lease-duration=1200s",
    ]  # fmt: skip
    commands = {
        "apart": [
            agent,
            ["scheduler", f"--kubeconfig={accounts.account('volcano-scheduler')}", "--leader-elect=false"],
            ["controller-manager", f"--kubeconfig={accounts.account('volcano-controllers')}", "--leader-elect=false"],
        ],
        "manager": [
            agent,
            ["manager", f"--kubeconfig={accounts.account('volcano-controllers')}", "--leader-elect=false"],
        ],
        "null": [agent],
        "bare": [],
    }[who]
    profile = os.environ.get("VOLCANO_PROFILE", "")
    running = []
    try:
        for words in commands:
            log = (folder / f"{words[0]}.log").open("wb")
            start = [sys.executable, "-m", "volcano", *words]
            if profile == words[0]:
                start = [sys.executable, "-m", "cProfile", "-o", f"/tmp/{profile}.prof", "-m", "volcano", *words]
            running.append(subprocess.Popen(start, stdout=log, stderr=log))
        pids = {words[0]: process.pid for words, process in zip(commands, running, strict=True)}
        yield {**pids, **plane.pids, "benchmark": os.getpid()}
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait()
        for words in commands:
            text = (folder / f"{words[0]}.log").read_text().strip().splitlines()
            troubles = [line for line in text if " W " in line or " E " in line or "Error" in line]
            if troubles:
                print(f"{words[0]}: {len(troubles)} complaints, the last: {troubles[-1][:300]}", file=sys.stderr)


async def bench(plane: ControlPlane, options: argparse.Namespace) -> None:
    clock = SystemClock()
    client = Client(HttpTransport(load_endpoint(plane.kubeconfig), clock), agent="benchmark")
    await client.create(resource_type(Namespace), {"metadata": {"name": "bench"}})
    mirror = Mirror(clock.now)
    is_null = options.components in ("null", "bare")
    with components(plane, plane.folder, options.nodes, options.components) as pids:
        names = [f"node-{number}" for number in range(options.nodes)]
        if "agent" in pids:
            names = await ready(client, options.nodes, is_null=is_null)
        null = NullComponents(client, names) if is_null else None
        informer = Informer(client, mirror, clock, Pod, namespace="bench")
        watching = asyncio.ensure_future(informer.run())
        await informer.synced()
        for _ in range(options.repeat):
            for text in options.shapes.split(","):
                jobs, size = map(int, text.split("x"))
                await at_rest(client)
                used = processor_seconds(pids)
                async with profiled(client, options.profile, f"{options.components}-{text}"):
                    found = await shape(client, mirror, jobs, size, pids, null)
                tell(jobs, size, found, detailed=options.detail)
                now = processor_seconds(pids)
                now.subtract(used)
                tell_cpu("ms of CPU a pod until bound", found.cpu_to_bound, jobs * size)
                tell_cpu("ms of CPU a pod until deleted", now, jobs * size)
        watching.cancel()
    await client.close()


@contextlib.asynccontextmanager
async def profiled(client: Client, folder: str, name: str) -> AsyncIterator[None]:
    """Where a folder is given, kube-apiserver's CPU profile of the block's first 15 seconds is written into it."""
    if not folder:
        yield
        return
    query = (("seconds", "15"),)
    asked = asyncio.ensure_future(client.raw(Request("GET", "/debug/pprof/profile", query)))
    yield
    body = (await asked).body
    await asyncio.to_thread(Path(folder, f"{name}.pprof").write_bytes, body)


def tell_cpu(what: str, used: Counter[str], pods: int) -> None:
    each = ", ".join(f"{name} {1000 * seconds / pods:.1f}" for name, seconds in used.items())
    print(f"              {what}: {1000 * used.total() / pods:.1f} = {each}", flush=True)


async def ready(client: Client, nodes: int, *, is_null: bool) -> list[str]:
    """The components work and all nodes are there; the nodes' names."""
    nodes_type = find_resource_type("", "Node")
    end = time.monotonic() + 180
    while time.monotonic() < end:
        await asyncio.sleep(1)
        with contextlib.suppress(ApiError):
            found = await client.list_json(nodes_type, resourceVersion="0")
            is_open = is_null or (await client.get(Queue, Key("", "default"))).status.state == "Open"
            if is_open and len(found["items"]) >= nodes:
                return [item["metadata"]["name"] for item in found["items"]]
    raise SystemExit("the components were not ready within 180 s")


async def at_rest(client: Client) -> None:
    """Nobody has anything to do any more: Kubernetes' own controllers first write to every new node, for one."""
    before: Counter[str] = Counter()
    end = time.monotonic() + 180
    while time.monotonic() < end:
        now = await requests_so_far(client)
        if (now - before).total() < RESTING:
            return
        before = now
        await asyncio.sleep(2)
    raise SystemExit("the cluster did not come to rest within 180 s")


def tell(jobs: int, size: int, found: Measured, *, detailed: bool) -> None:
    pods, rate, asked = jobs * size, found.pods_per_second, found.requests
    events = sum(count for what, count in asked.items() if what.split()[1] == "events")
    others = {what: count for what, count in asked.items() if what.split()[1].partition("/")[0] not in APART}
    total = sum(others.values())
    own = total - jobs - pods  # without the submits, and without what nodes say of their pods
    figures = f"{own / pods:5.2f} requests/pod   ({total / pods:5.2f} in all)   {events / pods:5.2f} events/pod"
    print(f"{jobs:>5} x {size:<5} {rate:7.1f} pods/s   {figures}", flush=True)
    if detailed:
        for what, count in sorted(others.items(), key=lambda item: -item[1]):
            print(f"              {count / pods:6.3f} {what}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--shapes", default="1000x1,100x10,10x100,1x1000")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--detail", action="store_true", help="requests by kind")
    parser.add_argument("--components", choices=("apart", "manager", "null", "bare"), default="apart")
    parser.add_argument("--profile", default="", help="a folder for CPU profiles of kube-apiserver")
    options = parser.parse_args()
    programs = binaries()
    if programs is None:
        print("the control plane is not built (make kubernetes): skipped")
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the components end with us
    more = {"kube-controller-manager": ["--node-monitor-grace-period=3000s"]}
    if options.profile:
        more["kube-apiserver"] = ["--profiling=true"]
    with (
        tempfile.TemporaryDirectory() as folder,
        ControlPlane(Path(folder), programs, strict=False, controls=options.components != "bare", more=more) as plane,
    ):
        asyncio.run(bench(plane, options))


if __name__ == "__main__":
    main()
