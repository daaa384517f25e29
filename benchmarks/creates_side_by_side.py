"""Pod creates over HTTPS: the embedded API server and a real kube-apiserver with etcd, in turn, on this machine.

    python benchmarks/creates_side_by_side.py [--pods 4000] [--clients 8,32] [--rounds 3] [--other NAME=CHECKOUT/src]

Every round puts the same requests (https_load) on each server, one server after the other, so that all of them meet the
machine in the same state; the servers that are not asked are stopped (SIGSTOP), since their own work would count.
kube-apiserver needs `make kubernetes`; without it only the embedded server is measured. `--other` adds an embedded
server of another checkout, to compare two commits.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import uvloop
from apiserver_http import cpu_of
from apiserver_in_process import a_pod
from https_load import Load, encoded, put_load
from jobs_to_pods import calibration

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.kubernetes.control_plane import ControlPlane, binaries
from volcano.machinery.kubeconfig import Endpoint, endpoint_from

NAMESPACE = "bench"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
KUBERNETES = "kube-apiserver"


class Contender:
    """A server under test: where it is and which processes it consists of."""

    def __init__(self, name: str, kubeconfig: Path, processes: list[int]) -> None:
        self.name, self.processes = name, processes
        self.endpoint: Endpoint = endpoint_from([kubeconfig])
        self.host = urlsplit(self.endpoint.server).netloc
        self.pods = 0

    def cpu(self) -> float:
        return sum(map(cpu_of, self.processes))

    def prefer(self, nice: int) -> None:
        for process in self.processes:
            prefer(process, nice)

    def pause(self) -> None:
        for process in self.processes:
            os.kill(process, signal.SIGSTOP)

    def resume(self) -> None:
        for process in self.processes:
            os.kill(process, signal.SIGCONT)

    async def prepare(self) -> None:
        """The namespace and the service account that kube-apiserver asks for; its controllers do not run."""
        namespace = b'{"metadata":{"name":"%s"}}' % NAMESPACE.encode()
        account = b'{"metadata":{"name":"default"}}'
        for path, body in (("", namespace), (f"/{NAMESPACE}/serviceaccounts", account)):
            request = encoded("POST", f"/api/v1/namespaces{path}", self.host, body)
            await put_load(self.endpoint, [request], 1)

    async def measure(self, pods: int, clients: int) -> tuple[Load, float]:
        """One load, and the CPU seconds that the server's processes spent on it."""
        numbers = range(self.pods, self.pods + pods)
        self.pods += pods
        requests = [encoded("POST", PODS, self.host, a_pod(number)) for number in numbers]
        busy = self.cpu()
        load = await put_load(self.endpoint, requests, clients)
        return load, self.cpu() - busy


@contextlib.contextmanager
def embedded(name: str, sources: Path | None, folder: Path, nice: int = 0) -> Iterator[Contender]:
    """The embedded server as benchmarks/apiserver_http.py serves it, from these sources or those of a checkout."""
    folder.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(sources)} if sources is not None else None
    command = [sys.executable, str(Path(__file__).with_name("apiserver_http.py")), "serve", str(folder)]
    # In a session of its own, as the control plane's processes are: the scheduler gives every session the same share.
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, start_new_session=True)
    try:
        if nice:
            prefer(server.pid, nice)
        assert server.stdout is not None
        assert server.stdout.readline().strip() == "ready"
        yield Contender(name, folder / "kubeconfig", [server.pid])
    finally:
        server.kill()
        server.wait()


@contextlib.contextmanager
def kubernetes(folder: Path) -> Iterator[Contender | None]:
    programs = binaries()
    if programs is None:
        print("kube-apiserver is not built (make kubernetes): only embedded servers are measured", flush=True)
        yield None
        return
    folder.mkdir()
    with ControlPlane(folder, programs, controls=False, strict=False) as plane:
        contender = Contender(KUBERNETES, plane.kubeconfig, list(plane.pids.values()))
        try:
            yield contender
        finally:
            contender.resume()


def prefer(process: int, nice: int) -> None:
    """The priority of a process, and of its session where the kernel shares the CPUs out by sessions."""
    os.setpriority(os.PRIO_PROCESS, process, nice)
    with contextlib.suppress(OSError):
        Path(f"/proc/{process}/autogroup").write_text(str(nice))


async def compare(contenders: list[Contender], options: argparse.Namespace) -> None:
    for contender in contenders:
        contender.prefer(options.nice)
        await contender.prepare()
        await contender.measure(options.warm_up, 8)
        contender.pause()
    for clients in map(int, options.clients.split(",")):
        rates: dict[str, list[float]] = {contender.name: [] for contender in contenders}
        cpus: dict[str, list[float]] = {contender.name: [] for contender in contenders}
        for _ in range(options.rounds):
            for contender in contenders:
                contender.resume()
                load, cpu = await contender.measure(options.pods, clients)
                contender.pause()
                await asyncio.sleep(options.pause)
                rates[contender.name].append(load.requests / load.seconds)
                cpus[contender.name].append(cpu / load.requests * 1e6)
                generator = load.generator_cpu / load.requests * 1e6
                print(
                    f"{clients:3} clients  {contender.name:16} {rates[contender.name][-1]:7,.0f} creates/s   server "
                    f"{cpus[contender.name][-1]:5.0f} µs of CPU each   generator {generator:4.0f} µs   "
                    f"median {load.median_ms:5.1f} ms, slowest {load.slowest_ms:5.0f} ms   "
                    f"calibration {calibration():.3f} s   load {os.getloadavg()[0]:.1f}",
                    flush=True,
                )
        for name in list(rates):
            rate, cpu = statistics.median(rates[name]), statistics.median(cpus[name])
            line = f"{clients:3} clients  {name:16} median {rate:,.0f} creates/s, {cpu:.0f} µs of CPU each"
            for other in list(rates):
                if other != name and contenders[0].name == name:
                    line += f"; {rate / statistics.median(rates[other]):.2f} times the rate of {other}"
                    line += f" with {cpu / statistics.median(cpus[other]):.2f} of its CPU"
            print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pods", type=int, default=4000, help="for each load")
    parser.add_argument("--warm-up", type=int, default=1000, help="pods before the first load")
    parser.add_argument("--clients", default="8,32")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--nice", type=int, default=0, help="priority of servers and generator, on a machine that works"
    )
    parser.add_argument(
        "--pause", type=float, default=0.0, help="seconds after each load, for what else the machine does"
    )
    parser.add_argument(
        "--other", action="append", default=[], help="NAME=SOURCES: an embedded server of another checkout"
    )
    parser.add_argument("--without-kubernetes", action="store_true")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the servers end with us
    if options.nice:
        if os.getsid(0) != os.getpid():
            os.setsid()
        prefer(os.getpid(), options.nice)
    with contextlib.ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory()))
        contenders = [running.enter_context(embedded("embedded", None, folder / "embedded", options.nice))]
        for text in options.other:
            name, _, sources = text.partition("=")
            contenders.append(running.enter_context(embedded(name, Path(sources), folder / name, options.nice)))
        if not options.without_kubernetes:
            real = running.enter_context(kubernetes(folder / "kubernetes"))
            contenders += [real] if real is not None else []
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(compare(contenders, options))


if __name__ == "__main__":
    main()
