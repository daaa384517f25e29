"""Forks the holder processes of containers, and learns from each whether its command runs.

A holder closes its end of a pipe once the command runs, and writes the error to it if the command cannot start. The
reply to the agent is sent then. Standard library only.
"""

from __future__ import annotations

import errno
import os
import selectors
from collections.abc import Callable
from typing import NamedTuple

from volcano.embedded.agent.kernel import linux
from volcano.embedded.agent.processes import container_shim, sandbox
from volcano.embedded.agent.processes.supervisor_protocol import Order

MAX_ERROR_BYTES = 4096


class PendingStart(NamedTuple):
    """A holder whose command does not run yet."""

    pid: int
    go: int  # the holder waits at the other end until its users are mapped
    done: Callable[[OSError | None], None]


class ContainerStarts:
    """Starts that were not reported yet, by the pipe that their result comes through."""

    def __init__(self, selector: selectors.BaseSelector, *, tier: str) -> None:
        self._selector, self._tier = selector, tier
        self._pending: dict[int, PendingStart] = {}
        self._own_pids = os.open("/proc/self/ns/pid", os.O_RDONLY)
        self._life, self._life_end = os.pipe()  # holders end when the supervisor no longer has the writing end

    def start(self, order: Order, namespaces: dict[str, int], done: Callable[[OSError | None], None]) -> int:
        """Fork a holder; returns its PID. `done` is called with the error, None once the command runs."""
        result, result_end = os.pipe()
        go, go_end = os.pipe()
        try:
            pid = self._fork(order, result_end, go, namespaces)
        except OSError:
            os.close(result)
            os.close(go_end)
            raise
        finally:
            os.close(result_end)
            os.close(go)
        self._pending[result] = PendingStart(pid, go_end, done)
        self._selector.register(result, selectors.EVENT_READ, self._on_result)
        return pid

    def flush(self) -> None:
        """Report the starts whose result is known: called before an exit is reported, so that starts come first."""
        for descriptor in tuple(self._pending):
            key = self._selector.get_key(descriptor)
            os.set_blocking(descriptor, False)
            try:
                self._on_result(key, 0)
            except BlockingIOError:
                os.set_blocking(descriptor, True)

    def leave(self) -> None:
        """In a forked child: close the pipe that must stay open only while the supervisor runs."""
        os.close(self._life_end)

    def _fork(self, order: Order, result: int, go: int, namespaces: dict[str, int]) -> int:
        if not order["own_processes"]:
            pid = os.fork()
        elif self._tier == "user":
            pid = linux.fork_into(linux.NEWPID)  # after unshare this process could not return to its own namespace
        else:
            linux.unshare(linux.NEWPID)
            try:
                pid = os.fork()
            finally:
                if os.getpid() != 1:
                    linux.setns(self._own_pids, linux.NEWPID)
        if pid == 0:
            self.leave()
            container_shim.hold(order, answer=result, life=self._life, go=go, namespaces=namespaces)
        return pid

    def _on_result(self, key: selectors.SelectorKey, _mask: int) -> None:
        error = os.read(key.fd, MAX_ERROR_BYTES)
        if error.startswith(sandbox.MAP_USERS):
            _map_users(self._pending[key.fd])
            error = error[1:]
            if not error:
                return
        pending = self._pending.pop(key.fd)
        os.close(pending.go)
        self._selector.unregister(key.fd)
        os.close(key.fd)
        is_full = error.startswith(sandbox.NO_SPACE)
        message = error.removeprefix(sandbox.NO_SPACE).decode(errors="replace")
        pending.done(OSError(errno.ENOSPC if is_full else 0, message) if error else None)


def _map_users(pending: PendingStart) -> None:
    """Map every user to the same number in the holder's new user namespace."""
    try:
        for name in ("uid_map", "gid_map"):
            with open(f"/proc/{pending.pid}/{name}", "w") as file:
                file.write("0 0 4294967295")
        os.write(pending.go, sandbox.MAP_USERS)
    except OSError:
        try:
            os.write(pending.go, b"x")
        except OSError:
            pass  # the holder has already ended
