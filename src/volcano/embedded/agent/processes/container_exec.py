"""Runs a further command in a running container: joins its namespaces first. Forked by the supervisor; stdlib only."""

from __future__ import annotations

import os
import signal
import socket
import stat

from volcano.embedded.agent.kernel import linux, terminals
from volcano.embedded.agent.processes import sandbox
from volcano.embedded.agent.processes.container_shim import descendants
from volcano.embedded.agent.processes.supervisor_protocol import Order

NOT_FOUND = 127
NOT_STARTED = 126


def run(order: Order, *, holder: int, standard: list[int], terminal: bool, seconds: int = 0) -> None:
    """Run the command and exit with its code; never returns. With `seconds`, both are killed after that time."""
    code = NOT_STARTED
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        signal.alarm(seconds)
        cgroups = [os.open(path, os.O_WRONLY | os.O_CLOEXEC) for path in order["cgroups"]]
        _join(holder)
        child = os.fork()
        if child == 0:
            _become_command(order, standard, cgroups, terminal)
        for descriptor in standard:
            os.close(descriptor)
        ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        code = ended if ended >= 0 else 128 - ended
    except BaseException as error:
        _write_error(standard, f"{error}")
    os._exit(code)


def _join(holder: int) -> None:
    """Join the namespaces of the holder; the command's PID namespace is the one of the holder's children."""
    inside = (descendants(holder) or [holder])[0]
    # The user namespace comes last: joining the others needs rights that this process loses with its own.
    kinds = (("ipc", linux.NEWIPC), ("uts", linux.NEWUTS), ("net", linux.NEWNET), ("pid", linux.NEWPID),
             ("mnt", linux.NEWNS), ("user", linux.NEWUSER))  # fmt: skip
    opened = []
    for name, kind in kinds:
        theirs = os.stat(f"/proc/{inside}/ns/{name}")
        ours = os.stat(f"/proc/self/ns/{name}")
        if theirs.st_ino != ours.st_ino:
            opened.append((os.open(f"/proc/{inside}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC), kind))
    root = os.open(f"/proc/{inside}/root", os.O_PATH | os.O_CLOEXEC)
    for descriptor, kind in opened:
        if kind == linux.NEWUSER:
            os.fchdir(root)
            os.chroot(".")
        linux.setns(descriptor, kind)
    if any(kind == linux.NEWNS for _, kind in opened):
        os.fchdir(root)
        os.chroot(".")


def _become_command(order: Order, standard: list[int], cgroups: list[int], terminal: bool) -> None:
    try:
        os.setsid()
        if terminal:
            standard = _open_terminal(standard[0])
        if order["uid"] is not None:
            _give(standard, order["uid"], is_terminal=terminal)
        for cgroup in cgroups:
            os.write(cgroup, b"0")
        sandbox.become(order)
        linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)  # a change of users would take it back
        for number, descriptor in enumerate(standard):
            os.dup2(descriptor, number)
        os.environ.clear()
        os.environ.update(order["environment"])
        os.execvpe(order["argv"][0], order["argv"], order["environment"])
    except FileNotFoundError as error:
        _write_error(standard, f"exec {order['argv'][0]}: {os.strerror(error.errno or 0)}")
        os._exit(NOT_FOUND)
    except BaseException as error:
        _write_error(standard, str(error))
    os._exit(NOT_STARTED)


def _give(standard: list[int], uid: int, *, is_terminal: bool) -> None:
    """Let the command open its streams again as /dev/stdout, if they are pipes or a terminal of its container."""
    for descriptor in standard:
        if stat.S_ISFIFO(os.fstat(descriptor).st_mode) or is_terminal:
            os.fchown(descriptor, uid, -1)


def _open_terminal(outlet: int) -> list[int]:
    """Open a terminal in the container; its master end is sent through the socket to the requesting agent."""
    master, slave = terminals.open_terminal()
    terminals.take_terminal(slave)
    with socket.socket(fileno=os.dup(outlet)) as way_out:
        socket.send_fds(way_out, [b"t"], [master])
    os.close(master)
    return [slave, slave, slave]


def _write_error(standard: list[int], message: str) -> None:
    try:
        os.write(standard[-1], f"{message}\n".encode())
    except (OSError, IndexError):
        pass
