"""The supervisor: a small, long-lived process that starts and reaps the processes of pods.

Started as `python -m volcano.embedded.agent.processes.supervisor DIR`.

It outlives the agent, which finds it again by its socket, and writes every exit to disk before it reports it. When it
ends, its pods end. It carries out requests and decides nothing. Standard library only, so that it stays small.
"""

from __future__ import annotations

import errno
import fcntl
import gc
import os
import platform
import selectors
import signal
import sys
import time
from typing import Any

from volcano.embedded.agent.kernel import linux, seccomp
from volcano.embedded.agent.processes import container_exec, container_shim, device_files
from volcano.embedded.agent.processes.agent_connections import AgentConnections, Connection
from volcano.embedded.agent.processes.container_starts import ContainerStarts
from volcano.embedded.agent.processes.journal import Journal
from volcano.embedded.agent.processes.pod_namespaces import PodNamespaces
from volcano.embedded.agent.processes.supervisor_protocol import JOURNAL, LOCK, VERSION, Order, ProcessRecord

IDLE_EXIT_SECONDS = 30
"""Without an agent and without containers the supervisor exits after this time."""
FULL_DISK_RETRY_SECONDS = 1
"""An exit that cannot be written to the journal is written and reported later."""
KILLED_EXIT_CODE = 137


class Supervisor:
    """The containers, their processes, and the connected agents."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._journal = Journal(f"{directory}/{JOURNAL}")
        self._selector = selectors.DefaultSelector()
        self._agents = AgentConnections(self._selector, self._handle)
        self._live: dict[int, str] = {}  # PID of a holder → container
        self._without_namespace: set[int] = set()  # PIDs of holders that share the machine's PID namespace
        self._execs: dict[int, tuple[Connection, int]] = {}  # PID → the request to reply to
        self._unreported: list[ProcessRecord] = []  # exits that are not in the journal yet
        self._is_ending = False
        self.tier = _tier()
        self._pods = PodNamespaces()
        self._starts = ContainerStarts(self._selector, tier=self.tier)
        if self.tier != "none":
            self._make_devices()

    # -- the loop ---------------------------------------------------------------------------------------------
    def run(self) -> None:
        self._agents.listen(self._directory)
        self._wake_on_signals()
        while not self._is_ending:
            ready = self._selector.select(FULL_DISK_RETRY_SECONDS if self._unreported else IDLE_EXIT_SECONDS)
            if not ready and not self._agents and not self._live and not self._unreported:
                break
            for key, mask in ready:
                key.data(key, mask)
            self._reap()
            self._report_exits()
        self._end_everything()
        self._pods.close_all()

    def _wake_on_signals(self) -> None:
        woken, wake = os.pipe()
        for end in (woken, wake):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        signal.signal(signal.SIGTERM, self._on_terminate)
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)
        self._selector.register(woken, selectors.EVENT_READ, _drain)

    def _on_terminate(self, _number: int, _frame: object) -> None:
        self._is_ending = True

    # -- requests ---------------------------------------------------------------------------------------------
    def _handle(self, connection: Connection, request: dict[str, Any]) -> None:
        number = request.get("number", 0)
        try:
            reply = self._carry_out(connection, request, number)
        except OSError as error:
            reply = {"error": str(error) or repr(error), "errno": error.errno}
        except (KeyError, ValueError) as error:
            reply = {"error": str(error) or repr(error)}
        if reply is not None:
            self._agents.send(connection, {"number": number, **reply})

    def _carry_out(self, connection: Connection, request: dict[str, Any], number: int) -> dict[str, Any] | None:
        """The reply; None when it is sent later."""
        match request["do"]:
            case "hello":
                return {"version": VERSION, "pid": os.getpid(), "tier": self.tier}
            case "list":
                return {"containers": list(self._journal.records.values()), "pods": self._pods.addresses}
            case "start":
                return self._start(connection, request["order"], number)
            case "signal":
                return {"sent": self._signal(request["container"], request["signal"])}
            case "exec":
                self._exec(connection, request, number)
                return None
            case "open_pod":
                return {"address": self._pods.open(request["pod"], request["wire"])}
            case "close_pod":
                self._pods.close(request["pod"])
                return {}
            case "socket":
                with self._pods.make_socket(request["pod"], request["family"]) as made:
                    reply = {"number": number, "descriptors": 1}
                    self._agents.send_descriptor(connection, reply, made.fileno())
                return None
            case "forget":
                live = set(self._live.values())
                self._journal.forget([each for each in request["containers"] if each not in live])
                return {}
            case "end":
                self._is_ending = True
                return {}
            case other:
                return {"error": f"unknown request {other}"}

    def _start(self, connection: Connection, order: Order, number: int) -> dict[str, Any] | None:
        container = order["container"]
        known = self._journal.records.get(container)
        if known is not None and not known["is_lost"] and known["exit_code"] is None:
            return {"record": known}

        def done(error: OSError | None) -> None:
            if not connection.is_open:
                return
            if error is not None:
                self._journal.forget([container])
                self._agents.send(connection, {"number": number, "error": error.strerror, "errno": error.errno})
            else:
                self._agents.send(connection, {"number": number, "record": self._journal.records.get(container)})

        record = _record(container)
        self._journal.starting(record)
        try:
            pid = self._starts.start(order, self._pods.of(order["pod"]), done)
        except OSError:
            self._journal.forget([container])
            raise
        record["pid"] = pid  # not in the journal: an earlier supervisor's process has ended, whatever its number was
        self._live[pid] = container
        if not order["own_processes"]:
            self._without_namespace.add(pid)
        return None

    def _signal(self, container: str, number: int) -> bool:
        for pid, live in self._live.items():
            if live == container:
                try:
                    if number == signal.SIGKILL and pid in self._without_namespace:
                        # Killing the holder would leave its processes running: they are killed, and the holder exits.
                        for below in container_shim.descendants(pid):
                            os.kill(below, number)
                        return True
                    os.kill(pid, number)
                except ProcessLookupError:
                    return False
                return True
        return False

    def _exec(self, connection: Connection, request: dict[str, Any], number: int) -> None:
        taken = connection.take_descriptors(request["descriptors"])
        try:
            holder = next((pid for pid, live in self._live.items() if live == request["container"]), None)
            if holder is None:
                raise OSError(errno.ESRCH, f"container {request['container']} does not run")
            pid = os.fork()
            if pid == 0:
                self._starts.leave()
                container_exec.run(
                    request["order"],
                    holder=holder,
                    standard=taken,
                    terminal=request["terminal"],
                    seconds=request["seconds"],
                )
            self._execs[pid] = (connection, number)
        finally:
            for descriptor in taken:
                os.close(descriptor)

    # -- exits ------------------------------------------------------------------------------------------------
    def _reap(self) -> None:
        ended: list[ProcessRecord] = []
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            code = os.waitstatus_to_exitcode(status)
            code = code if code >= 0 else 128 - code
            if pid in self._execs:
                connection, number = self._execs.pop(pid)
                if connection.is_open:
                    self._agents.send(connection, {"number": number, "exit_code": code})
                continue
            self._without_namespace.discard(pid)
            record = self._journal.records.get(self._live.pop(pid, ""))
            if record is not None:
                ended.append({**record, "exit_code": code, "finished": time.time()})
        if not ended:
            return
        self._starts.flush()
        # A container that could not be started is no longer in the journal: its error was the reply.
        ended = [record for record in ended if record["container"] in self._journal.records]
        self._journal.exited(ended)
        self._unreported += ended

    def _report_exits(self) -> None:
        """Report exits once they are on disk."""
        if not self._unreported or not self._journal.flush():
            return
        for record in self._unreported:
            self._agents.broadcast({"event": "exited", "record": record})
        self._unreported.clear()

    def _end_everything(self) -> None:
        for pid in tuple(self._live):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        while self._live:
            pid, _ = os.waitpid(-1, 0)
            record = self._journal.records.get(self._live.pop(pid, ""))
            if record is not None:
                self._journal.exited([{**record, "exit_code": KILLED_EXIT_CODE, "finished": time.time()}])
        self._journal.flush()

    def _make_devices(self) -> None:
        """Make one /dev for all containers, in a mount namespace of the supervisor's own."""
        linux.unshare(linux.NEWNS)
        linux.mount("none", "/", "", linux.MS_REC | linux.MS_SLAVE)
        directory = f"{self._directory}/dev"
        os.makedirs(directory, exist_ok=True)
        device_files.make_devices(directory)


def _drain(key: selectors.SelectorKey, _mask: int) -> None:
    try:
        while os.read(key.fd, 4096):
            pass
    except BlockingIOError:
        pass


def _record(container: str) -> ProcessRecord:
    return {
        "container": container,
        "pid": 0,
        "started": time.time(),
        "finished": None,
        "exit_code": None,
        "is_lost": False,
        "oom_killed": False,
    }


def _tier() -> str:
    """The isolation that this process can give; a user namespace is entered here, for all pods."""
    tier = linux.isolation_tier()
    if tier != "user":
        return tier
    user, group = os.geteuid(), os.getegid()
    linux.unshare(linux.NEWUSER | linux.NEWIPC)
    for path, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
        with open(f"/proc/self/{path}", "w") as file:
            file.write(text)
    return tier


def main(directory: str) -> int:
    os.makedirs(directory, mode=0o700, exist_ok=True)
    lock = os.open(f"{directory}/{LOCK}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return 0  # another supervisor has this directory
    seccomp.filter_program(platform.machine())  # once, for all that is forked
    gc.disable()
    gc.freeze()
    Supervisor(directory).run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
