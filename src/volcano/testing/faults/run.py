"""One run: a seed's workload and faults on a new cluster, until everything has ended and nothing happens any more."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import functools
import gc
import itertools
import logging
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from volcano.app.settings import SCHEDULER_CONFIGMAP
from volcano.app.system import MASTERS
from volcano.machinery.client import Client
from volcano.machinery.transport import InProcess, User
from volcano.testing.faults import processes
from volcano.testing.faults.chance import chance_of
from volcano.testing.faults.disk import Disk
from volcano.testing.faults.invariants import Observer
from volcano.testing.faults.machines import EndlessWork, MachineLoop, SimulatedMachine, wait_seconds
from volcano.testing.faults.memory import leftovers
from volcano.testing.faults.network import ANSWER_TIMEOUT_SECONDS, FaultyNetwork
from volcano.testing.faults.past import differences
from volcano.testing.faults.plan import (
    FAULT_SECONDS,
    HISTORY,
    ON_REQUEST,
    SERVER,
    Fault,
    faults_of,
    faults_of_history,
)
from volcano.testing.faults.processes import Process
from volcano.testing.faults.server import ServerMachine
from volcano.testing.faults.trace import Trace
from volcano.testing.faults.users import Users
from volcano.testing.faults.workload import NODE_CPUS, Workload, workload_of

END_SECONDS: Final = 1200.0
"""Within this time after the last fault every job must have reached its end."""
CALM_SECONDS: Final = 30.0
SETTLE_SECONDS: Final = 45.0
QUIET_SECONDS: Final = 60.0
LOOK_SECONDS: Final = 2.0
RUNS_PER_COLLECTION: Final = 8
_runs = itertools.count()
CAPACITY: Final = {"cpu": str(NODE_CPUS), "memory": "8Gi", "pods": "20"}

TEMPLATE_SEED: Final = -1
"""Of the objects that every run begins with: no run has it, so their UIDs differ from those of the run."""


class RunResult(msgspec.Struct):
    """How a run ended: what did not hold, and everything that happened."""

    seed: int
    faults: list[Fault]
    violations: list[str]
    lines: list[str]
    digest: str
    commits: int = 0
    unfinished: list[str] = []  # jobs that did not reach one of their ends, each also among the violations
    waits_without_faults: list[str] = []  # jobs that do not reach it without faults either: not a violation


def run_seed(seed: int, faults: Sequence[Fault] | None = None) -> RunResult:
    """Run a seed with its own faults, or with some of them, and compare the end with that of a run without any."""
    result = run_once(seed, faults)
    if not result.unfinished or not result.faults:
        return result
    alike = set(run_once(seed, []).unfinished)
    result.waits_without_faults = [each for each in result.unfinished if each in alike]
    result.violations = [each for each in result.violations if each not in alike]
    return result


def run_once(seed: int, faults: Sequence[Fault] | None = None) -> RunResult:
    """One run, judged by itself."""
    workload = workload_of(seed)
    chosen = list(faults) if faults is not None else all_faults_of(seed, workload)
    with _folder() as folder, _without_collection():
        one = _Run(seed, workload, chosen, folder)
        try:
            with asyncio.Runner(loop_factory=MachineLoop) as runner:
                return runner.run(one.run())
        except EndlessWork:
            return one.result(["it does not end: a component works on and on without waiting for anything"])


def all_faults_of(seed: int, workload: Workload) -> list[Fault]:
    busy = [act.at for act in workload.acts]
    drawn = faults_of(seed, machine_names(workload), busy=busy) + faults_of_history(seed, busy=busy)
    return sorted(drawn, key=lambda fault: (fault.at, fault.number))


def machine_names(workload: Workload) -> list[str]:
    names = ["cluster", *(f"node{number}" for number in range(workload.nodes))]
    for number in range(workload.replicas):
        names += [f"scheduler{number}"] * 2 + [f"controllers{number}"] * 2  # where most is decided, most goes wrong
    return names


class _Run:
    def __init__(self, seed: int, workload: Workload, faults: Sequence[Fault], folder: Path) -> None:
        self._seed, self._workload, self._faults = seed, workload, faults
        self._trace = Trace()
        self._disk = Disk(folder, chance_of("disk", seed))
        self._server = ServerMachine(self._disk, seed, self._trace, max_changes=workload.max_changes)
        self._network = FaultyNetwork(self._server.serve, self._trace, self._crash_process)
        self._observer = Observer(workload, self._trace)
        self._server.on_start = self._observer.follow
        self._server.on_crash = self._server_crashed
        self._history_path = folder / "history.db"
        self._processes = {each.name: each for each in self._make_processes()}
        self._down_seconds = 1.0
        self._timers: list[asyncio.TimerHandle] = []
        self._starting: set[asyncio.Task[None]] = set()
        self._has_stopped = False
        self._unfinished: list[str] = []

    def _make_processes(self) -> Iterator[Process]:
        def process(name: str, make: processes.MakePart, lease: str = "") -> Process:
            return Process(name, make, self._network, self._seed, lease=lease)

        elects = self._workload.replicas > 1
        yield process("cluster", processes.cluster)
        for number in range(self._workload.replicas):
            yield process(f"controllers{number}", processes.controllers, "vc-controllers" if elects else "")
            yield process(f"scheduler{number}", processes.scheduler, "vc-scheduler" if elects else "")
        for number in range(self._workload.nodes):
            yield process(f"node{number}", processes.node(f"node{number}", CAPACITY))
        yield process(HISTORY, processes.history(self._history_path))

    async def run(self) -> RunResult:
        logs = _ErrorLog()
        logging.getLogger("volcano").addHandler(logs)
        try:
            await self._live()
        finally:
            logging.getLogger("volcano").removeHandler(logs)
        violations = [*self._observer.violations, *logs.errors]
        for each in self._processes.values():
            violations += [f"{each.name} ended by {error!r}" for error in each.failures]
        return self.result(violations)

    def result(self, violations: list[str]) -> RunResult:
        return RunResult(
            self._seed,
            list(self._faults),
            violations,
            self._trace.lines,
            self._trace.digest,
            self._observer.changes,
            unfinished=self._unfinished,
        )

    async def _live(self) -> None:
        await self._server.start()
        users = Users(Client(InProcess(self._server.serve, User("system:user", MASTERS)), agent="user"))
        await users.configure(SCHEDULER_CONFIGMAP, self._workload.configuration)
        for each in self._processes.values():
            each.start()
        doing = SimulatedMachine("users").start(users.do_all(self._workload.acts))
        loop = asyncio.get_running_loop()
        for fault in self._faults:
            await wait_seconds(max(0.0, fault.at - loop.time()))
            self._trace.add("FAULT", str(fault))
            self._observer.disturbed()
            if fault.kind == "clock":
                self._observer.clock_is_wrong()
            self._inflict(fault)
        await wait_seconds(max(0.0, FAULT_SECONDS - loop.time()))
        self._stop_faults()
        if self._workload.is_timed:
            self._later(CALM_SECONDS, self._observer.calm)  # users go on while it is calm
        await doing
        if not self._workload.is_timed:
            self._later(CALM_SECONDS, self._observer.calm)
        self._observer.violations += users.refused
        await self._until_ended()
        await self._until_quiet()
        await self._close()

    # -- faults --------------------------------------------------------------------------------------------------
    def _inflict(self, fault: Fault) -> None:
        if fault.machine == SERVER:
            self._harm_server(fault)
        elif fault.kind in ON_REQUEST:
            self._network.arm(fault)
        elif fault.kind.startswith("watch-"):
            self._network.break_watches(fault)
        else:
            self._harm_process(self._processes[fault.machine], fault)

    def _harm_process(self, process: Process, fault: Fault) -> None:
        match fault.kind:
            case "crash":
                process.crash(restart_after=fault.seconds)
            case "stop":
                self._stop_machine(process.machine, fault.seconds)
            case "clock":
                process.machine.clock.set_wrong(fault.seconds)

    def _harm_server(self, fault: Fault) -> None:
        self._down_seconds = fault.seconds
        match fault.kind:
            case "crash":
                self._server.crash()
            case "full-disk":
                self._disk.is_full = True
                self._later(fault.seconds, self._free_disk)
            case "stop":
                self._stop_machine(self._server.machine, fault.seconds)
            case "clock":
                self._server.machine.clock.set_wrong(fault.seconds)
            case how:
                self._disk.crash_at_commit = how

    def _stop_machine(self, machine: SimulatedMachine, seconds: float) -> None:
        machine.stop()
        self._later(seconds, machine.resume)

    def _later(self, seconds: float, call: object) -> None:
        self._timers.append(asyncio.get_running_loop().call_later(seconds, call))  # type: ignore[arg-type]

    def _free_disk(self) -> None:
        self._disk.is_full = False

    def _crash_process(self, machine: SimulatedMachine) -> None:
        asyncio.get_running_loop().call_soon(self._crash_now, machine.name)

    def _crash_now(self, name: str) -> None:
        self._processes[name].crash(restart_after=1.0)

    def _server_crashed(self) -> None:
        self._network.break_all_watches()
        self._later(self._down_seconds, self._start_server)

    def _start_server(self) -> None:
        if not self._server.is_up:
            starting = SimulatedMachine("init").start(self._server.start())
            self._starting.add(starting)
            starting.add_done_callback(self._starting.discard)

    def _stop_faults(self) -> None:
        """Everything is well again: what was down comes up, what was stopped goes on, every clock is right."""
        self._trace.add("FAULT", "no more")
        self._has_stopped = True
        for timer in self._timers:
            timer.cancel()
        self._disk.is_full, self._disk.crash_at_commit = False, ""
        self._network.disarm_all()
        self._server.machine.resume()
        self._server.machine.clock.set_right()
        self._start_server()
        for process in self._processes.values():
            process.machine.resume()
            process.machine.clock.set_right()
            process.start_soon()

    # -- the end -------------------------------------------------------------------------------------------------
    async def _until_ended(self) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + END_SECONDS
        while wrong := self._observer.unfinished():
            if loop.time() > end or self._observer.violations:
                self._observer.violations += wrong
                self._unfinished = wrong
                self._observer.describe()
                return
            await wait_seconds(LOOK_SECONDS)

    async def _until_quiet(self) -> None:
        if self._observer.violations:
            return
        last_answer = FAULT_SECONDS + ANSWER_TIMEOUT_SECONDS  # requests that were not answered are given up by then
        if (window := self._workload.window) is not None:
            last_answer = max(last_answer, window.end)
        await wait_seconds(SETTLE_SECONDS + max(0.0, last_answer - asyncio.get_running_loop().time()))
        before = self._observer.changes
        await wait_seconds(QUIET_SECONDS)
        if self._observer.changes != before:
            self._observer.violations.append(f"{self._observer.changes - before} changes while nothing happens")
        self._observer.violations += self._observer.at_rest()
        self._observer.violations += leftovers(self._processes.values(), self._observer)
        self._observer.violations += differences(self._history_path, self._observer.past_jobs)

    async def _close(self) -> None:
        for process in self._processes.values():
            await process.end()
        for task in (*self._network.in_flight, *self._starting):
            task.cancel()
        await self._server.close()


class _ErrorLog(logging.Handler):
    """Exceptions that a component caught and logged are bugs too."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.errors: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.errors.append(self.format(record))


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=_memory(), prefix="volcano-faults-") as name:
        folder = Path(name)
        shutil.copytree(_bootstrapped(), folder / "0")
        yield folder


@functools.cache
def _bootstrapped() -> Path:
    """A disk on which a server has been started once: what it writes then is the same in every run."""
    name = tempfile.mkdtemp(dir=_memory(), prefix="volcano-faults-")
    atexit.register(shutil.rmtree, name, ignore_errors=True)
    folder = Path(name)
    (folder / "0").mkdir(mode=0o700)

    async def start() -> None:
        disk = Disk(folder, chance_of("template", 0))
        server = ServerMachine(disk, TEMPLATE_SEED, Trace(), max_changes=50_000)
        await server.start()
        await server.close()

    with asyncio.Runner(loop_factory=MachineLoop) as runner:
        runner.run(start())
    return folder / "0"


def _memory() -> Path | None:
    """In memory where the machine has such a place: the store waits for the disk after every commit."""
    memory = Path("/dev/shm")
    return memory if memory.is_dir() else None


@contextlib.contextmanager
def _without_collection() -> Iterator[None]:
    """The collector would close abandoned generators at moments that differ from run to run."""
    if next(_runs) % RUNS_PER_COLLECTION == 0:
        gc.collect()
        gc.freeze()  # what is left is the program itself: the next collection need not look at it again
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
