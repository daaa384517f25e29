"""A small, long-lived process that starts and reaps the pods' processes.

Started as `python -m volcano.embedded.agent.processes.supervisor DIR`.

It outlives the agent, which finds it again by its socket, and writes every exit to disk before telling it. When it
ends, its pods end. Standard library only, so that it stays small; it decides nothing.
"""

from __future__ import annotations

import errno
import fcntl
import gc
import os
import selectors
import signal
import socket
import sys
import time
from typing import Any

from volcano.embedded.agent.kernel import linux
from volcano.embedded.agent.kernel.netlink import Netlink
from volcano.embedded.agent.processes import container_exec, container_shim, sandbox
from volcano.embedded.agent.processes.journal import Journal
from volcano.embedded.agent.processes.supervisor_protocol import (
    JOURNAL,
    LOCK,
    MAX_MESSAGE_BYTES,
    SOCKET,
    VERSION,
    Order,
    ProcessRecord,
    Wire,
    decode,
    encode,
)

IDLE_EXIT_SECONDS = 30
"""How long it waits for an agent to come back when nothing runs."""
MAX_DESCRIPTORS_PER_MESSAGE = 8


class Connection:
    """An agent. What it is slow to read waits here, up to a limit."""

    def __init__(self, peer: socket.socket) -> None:
        self.socket = peer
        self.received = b""
        self.descriptors: list[int] = []
        self.unsent = b""


class Supervisor:
    """Containers, their processes, and who wants to know of them."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._journal = Journal(f"{directory}/{JOURNAL}")
        self._selector = selectors.DefaultSelector()
        self._connections: dict[int, Connection] = {}
        self._live: dict[int, str] = {}  # holder's pid → container
        self._plain: set[int] = set()  # holders without a PID namespace
        self._execs: dict[int, tuple[Connection, int]] = {}
        self._answers: dict[int, tuple[Connection, int, str]] = {}  # pipe → who asked to start what
        self._pods: dict[str, dict[str, int]] = {}  # pod → descriptors of its namespaces
        self._bridges: set[str] = set()
        self._go: dict[int, tuple[int, int]] = {}  # pipe of a start → its holder, and where it waits
        self._addresses: dict[str, str] = {}
        self._life, self._life_end = os.pipe()
        self._is_ending = False
        self.tier = _tier()
        self._namespaces = {name: os.open(f"/proc/self/ns/{name}", os.O_RDONLY) for name in ("pid", "net", "ipc")}
        if self.tier != "none":
            self._make_devices()

    # -- the loop ---------------------------------------------------------------------------------------------
    def run(self) -> None:
        listener = self._listen()
        woken, wake = os.pipe()
        for end in (woken, wake):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        signal.signal(signal.SIGTERM, self._asked_to_end)
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)
        self._selector.register(listener, selectors.EVENT_READ, self._accept)
        self._selector.register(woken, selectors.EVENT_READ, self._drain)
        while not self._is_ending:
            ready = self._selector.select(IDLE_EXIT_SECONDS)
            if not ready and not self._connections and not self._live:
                break
            for key, mask in ready:
                key.data(key, mask)
            self._reap()
        self._end_everything()
        for pod in tuple(self._pods):
            self._close_pod(pod)
        self._remove_bridges()

    def _listen(self) -> socket.socket:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # Through the directory's descriptor, for paths longer than a socket address may be.
        directory = os.open(self._directory, os.O_PATH | os.O_DIRECTORY)
        path = f"/proc/self/fd/{directory}/{SOCKET}"
        if os.path.lexists(path):
            os.unlink(path)
        before = os.umask(0o177)
        listener.bind(path)
        os.umask(before)
        os.close(directory)
        listener.listen(8)
        listener.setblocking(False)
        return listener

    def _asked_to_end(self, _number: int, _frame: object) -> None:
        self._is_ending = True

    def _drain(self, key: selectors.SelectorKey, _mask: int) -> None:
        try:
            while os.read(key.fd, 4096):
                pass
        except BlockingIOError:
            pass

    def _accept(self, key: selectors.SelectorKey, _mask: int) -> None:
        peer, _ = key.fileobj.accept()  # type: ignore[union-attr]
        peer.setblocking(False)
        self._connections[peer.fileno()] = Connection(peer)
        self._selector.register(peer, selectors.EVENT_READ, self._talk)

    def _talk(self, key: selectors.SelectorKey, mask: int) -> None:
        connection = self._connections.get(key.fd)
        if connection is None:
            return
        try:
            if mask & selectors.EVENT_WRITE:
                self._send(connection, b"")
            if mask & selectors.EVENT_READ:
                self._receive(connection)
        except (OSError, ValueError):
            self._hang_up(connection)

    def _receive(self, connection: Connection) -> None:
        received, descriptors, _, _ = socket.recv_fds(connection.socket, 262144, MAX_DESCRIPTORS_PER_MESSAGE)
        connection.descriptors += descriptors
        if not received:
            raise ConnectionResetError(errno.ECONNRESET, "the agent hung up")
        *lines, connection.received = (connection.received + received).split(b"\n")
        if len(connection.received) > MAX_MESSAGE_BYTES:
            raise ValueError("a message over the limit")
        for line in lines:
            self._answer(connection, decode(line))

    def _hang_up(self, connection: Connection) -> None:
        self._connections.pop(connection.socket.fileno(), None)
        self._selector.unregister(connection.socket)
        connection.socket.close()
        for descriptor in connection.descriptors:
            os.close(descriptor)

    def _send(self, connection: Connection, message: bytes) -> None:
        connection.unsent += message
        try:
            while connection.unsent:
                connection.unsent = connection.unsent[connection.socket.send(connection.unsent) :]
        except BlockingIOError:
            pass
        except OSError:
            return  # reading will notice
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if connection.unsent else 0)
        if self._selector.get_key(connection.socket).events != wanted:
            self._selector.modify(connection.socket, wanted, self._talk)

    def _tell_all(self, message: dict[str, Any]) -> None:
        line = encode(message)
        for connection in tuple(self._connections.values()):
            self._send(connection, line)

    # -- requests ---------------------------------------------------------------------------------------------
    def _answer(self, connection: Connection, request: dict[str, Any]) -> None:
        number = request.get("number", 0)
        try:
            reply = self._do(connection, request, number)
        except (OSError, KeyError, ValueError) as error:
            reply = {"error": str(error) or repr(error)}
        if reply is not None:
            self._send(connection, encode({"number": number, **reply}))

    def _do(self, connection: Connection, request: dict[str, Any], number: int) -> dict[str, Any] | None:
        match request["do"]:
            case "hello":
                return {"version": VERSION, "pid": os.getpid(), "tier": self.tier}
            case "list":
                return {"containers": list(self._journal.records.values()), "pods": self._addresses}
            case "start":
                self._start(connection, request["order"], number)
                return None
            case "signal":
                return {"sent": self._signal(request["container"], request["signal"])}
            case "exec":
                self._exec(connection, request, number)
                return None
            case "open_pod":
                return self._open_pod(request["pod"], request["wire"])
            case "close_pod":
                self._close_pod(request["pod"])
                return {}
            case "socket":
                self._make_socket(connection, number, request["pod"], request["family"])
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

    def _start(self, connection: Connection, order: Order, number: int) -> None:
        container = order["container"]
        known = self._journal.records.get(container)
        if known is not None and not known["is_lost"] and known["exit_code"] is None:
            self._send(connection, encode({"number": number, "record": known}))
            return
        answer, end = os.pipe()
        go, go_end = os.pipe()
        try:
            pid = self._fork(order, end, go)
        except OSError:
            os.close(answer)
            os.close(go_end)
            raise
        finally:
            os.close(end)
            os.close(go)
        self._live[pid] = container
        if not order["own_processes"]:
            self._plain.add(pid)
        self._journal.started(_record(container, pid))
        self._answers[answer] = (connection, number, container)
        self._go[answer] = (pid, go_end)
        self._selector.register(answer, selectors.EVENT_READ, self._started)

    def _fork(self, order: Order, answer: int, go: int) -> int:
        if not order["own_processes"]:
            pid = os.fork()
        elif self.tier == "user":
            pid = linux.fork_into(linux.NEWPID)  # there would be no way back from unshare for this process
        else:
            linux.unshare(linux.NEWPID)
            try:
                pid = os.fork()
            finally:
                if os.getpid() != 1:
                    linux.setns(self._namespaces["pid"], linux.NEWPID)
        if pid == 0:
            os.close(self._life_end)
            container_shim.hold(
                order, answer=answer, life=self._life, go=go, namespaces=self._pods.get(order["pod"], {})
            )
        return pid

    def _started(self, key: selectors.SelectorKey, _mask: int) -> None:
        """The command runs (the pipe just closed), or could not be started (it says why)."""
        trouble = os.read(key.fd, 4096)
        if trouble.startswith(sandbox.MAP_USERS):
            self._map_users(*self._go[key.fd])
            trouble = trouble[1:]
            if not trouble:
                return
        connection, number, container = self._answers.pop(key.fd)
        os.close(self._go.pop(key.fd)[1])
        self._selector.unregister(key.fd)
        os.close(key.fd)
        if connection.socket.fileno() < 0:
            return
        if trouble:
            self._journal.forget([container])
            self._send(connection, encode({"number": number, "error": trouble.decode(errors="replace")}))
            return
        self._send(connection, encode({"number": number, "record": self._journal.records.get(container)}))

    def _map_users(self, pid: int, go: int) -> None:
        """Everyone keeps their number in the holder's new user namespace."""
        try:
            for name in ("uid_map", "gid_map"):
                with open(f"/proc/{pid}/{name}", "w") as file:
                    file.write("0 0 4294967295")
            os.write(go, sandbox.MAP_USERS)
        except OSError:
            try:
                os.write(go, b"x")
            except OSError:
                pass  # it has ended already

    def _signal(self, container: str, number: int) -> bool:
        for pid, live in self._live.items():
            if live == container:
                try:
                    if number == signal.SIGKILL and pid in self._plain:
                        # Its holder cannot take them with it: they go first, and it follows.
                        for below in container_shim.descendants(pid):
                            os.kill(below, number)
                        return True
                    os.kill(pid, number)
                except ProcessLookupError:
                    return False
                return True
        return False

    def _exec(self, connection: Connection, request: dict[str, Any], number: int) -> None:
        count = request["descriptors"]
        taken, connection.descriptors = connection.descriptors[:count], connection.descriptors[count:]
        try:
            holder = next((pid for pid, live in self._live.items() if live == request["container"]), None)
            if holder is None:
                raise OSError(errno.ESRCH, f"container {request['container']} does not run")
            pid = os.fork()
            if pid == 0:
                os.close(self._life_end)
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

    def _open_pod(self, pod: str, wire: Wire | None) -> dict[str, Any]:
        """Namespaces that a pod's containers share: made by entering and leaving them again."""
        if pod in self._pods:
            return {"address": self._addresses.get(pod, "")}
        names = ("net", "ipc") if wire is not None else ("ipc",)
        linux.unshare(linux.NEWIPC | (linux.NEWNET if wire is not None else 0))
        try:
            found = {name: os.open(f"/proc/self/ns/{name}", os.O_RDONLY) for name in names}
        finally:
            self._go_home(names)
        self._pods[pod] = found
        if wire is not None:
            try:
                self._connect(found["net"], wire)
            except OSError:
                self._close_pod(pod)
                raise
            self._addresses[pod] = wire["address"]
            self._bridges.add(wire["bridge"])
        return {"address": self._addresses.get(pod, "")}

    def _connect(self, namespace: int, wire: Wire) -> None:
        """A wire from the bridge into the pod's network, and what the pod needs to use it."""
        with Netlink() as kernel:
            kernel.add_pair(wire["device"], "eth0", peer_namespace=namespace, master=wire["bridge"], mtu=wire["mtu"])
        linux.setns(namespace, linux.NEWNET)
        try:
            with open("/proc/sys/net/ipv4/ip_unprivileged_port_start", "w") as file:
                file.write("0")  # root of the pod's own user namespace has no say over this network otherwise
            with Netlink() as kernel:
                kernel.set_up("lo")
                kernel.add_address("eth0", wire["address"], wire["prefix"])
                kernel.set_up("eth0")
                kernel.add_default_route(wire["gateway"])
        finally:
            self._go_home(("net",))

    def _make_socket(self, connection: Connection, number: int, pod: str, family: int) -> None:
        """A socket in a pod's network, not connected yet; it stays in that network wherever it is used."""
        namespace = self._pods.get(pod, {}).get("net")
        if namespace is None:
            raise OSError(errno.ENOENT, f"pod {pod} has no network of its own")
        self._send(connection, b"")
        if connection.unsent:
            raise OSError(errno.EAGAIN, "the agent is slow to read")  # descriptors cannot wait their turn in a buffer
        linux.setns(namespace, linux.NEWNET)
        try:
            made = socket.socket(family, socket.SOCK_STREAM)
        finally:
            self._go_home(("net",))
        with made:
            message = encode({"number": number, "descriptors": 1})
            sent = socket.send_fds(connection.socket, [message], [made.fileno()])
        self._send(connection, message[sent:])

    def _go_home(self, names: tuple[str, ...]) -> None:
        for name in names:
            linux.setns(self._namespaces[name], linux.NEWNET if name == "net" else linux.NEWIPC)

    def _close_pod(self, pod: str) -> None:
        for descriptor in self._pods.pop(pod, {}).values():
            os.close(descriptor)
        self._addresses.pop(pod, None)

    # -- ends -------------------------------------------------------------------------------------------------
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
                if connection.socket.fileno() >= 0:
                    self._send(connection, encode({"number": number, "exit_code": code}))
                continue
            self._plain.discard(pid)
            container = self._live.pop(pid, "")
            record = self._journal.records.get(container)
            if record is not None:
                ended.append({**record, "exit_code": code, "finished": time.time()})
        if not ended:
            return
        self._flush_starts()
        ended = [record for record in ended if record["container"] in self._journal.records]
        if ended:
            self._journal.exited(ended)
            for record in ended:
                self._tell_all({"event": "exited", "record": record})

    def _flush_starts(self) -> None:
        """An exit is told after its start was: whoever ended so soon has already answered."""
        for descriptor in tuple(self._answers):
            key = self._selector.get_key(descriptor)
            os.set_blocking(descriptor, False)
            try:
                self._started(key, 0)
            except BlockingIOError:
                os.set_blocking(descriptor, True)

    def _end_everything(self) -> None:
        for pid in tuple(self._live):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        while self._live:
            pid, _ = os.waitpid(-1, 0)
            container = self._live.pop(pid, "")
            record = self._journal.records.get(container)
            if record is not None:
                self._journal.exited([{**record, "exit_code": 137, "finished": time.time()}])

    def _remove_bridges(self) -> None:
        """An agent that was killed cannot: what it made for its pods' network goes with the last of them."""
        if not self._bridges:
            return
        from volcano.embedded.agent.kernel.masquerade import stop_masquerade

        for bridge in self._bridges:
            try:
                with Netlink() as kernel:
                    kernel.remove(bridge)
                stop_masquerade(f"volcano-{bridge.removeprefix('vc')}")
            except OSError:
                pass  # the agent was faster

    def _make_devices(self) -> None:
        """One /dev for all containers, in a mount namespace of the supervisor's own."""
        linux.unshare(linux.NEWNS)
        linux.mount("none", "/", "", linux.MS_REC | linux.MS_SLAVE)
        directory = f"{self._directory}/dev"
        os.makedirs(directory, exist_ok=True)
        sandbox.make_devices(directory)


def _record(container: str, pid: int) -> ProcessRecord:
    return {
        "container": container,
        "pid": pid,
        "started": time.time(),
        "finished": None,
        "exit_code": None,
        "is_lost": False,
        "oom_killed": False,
    }


def _tier() -> str:
    """How well this process can keep pods apart: `root`, `user` (in a user namespace) or `none`."""
    wanted = linux.NEWNS | linux.NEWPID | linux.NEWUTS | linux.NEWIPC
    if linux.is_available(wanted):
        return "root"
    user, group = os.geteuid(), os.getegid()
    if not linux.is_available(linux.NEWUSER | wanted):
        return "none"
    linux.unshare(linux.NEWUSER | linux.NEWIPC)
    for path, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
        with open(f"/proc/self/{path}", "w") as file:
            file.write(text)
    return "user"


def main(directory: str) -> int:
    os.makedirs(directory, mode=0o700, exist_ok=True)
    lock = os.open(f"{directory}/{LOCK}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return 0  # another one is at work
    gc.disable()
    gc.freeze()
    Supervisor(directory).run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
