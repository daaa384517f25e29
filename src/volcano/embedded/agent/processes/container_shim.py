"""The holder process of one container: makes its mounts, starts its command, writes its log, forwards signals.

It is forked by the supervisor and is the first process of the container's PID namespace, so every process that the
command leaves behind ends with it. Standard library only; it never returns.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import socket

from volcano.embedded.agent.kernel import linux, terminals
from volcano.embedded.agent.processes import container_attach, sandbox
from volcano.embedded.agent.processes.container_attach import Attachments
from volcano.embedded.agent.processes.container_log import ContainerLog
from volcano.embedded.agent.processes.supervisor_protocol import Order

IO_CHUNK_BYTES = 65536
FORWARDED_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
NOT_STARTED = 128
MAX_DESCRIPTOR = 65536
MAX_ERROR_BYTES = 4000
MAX_KILL_ROUNDS = 100
"""Processes may fork while they are killed; after this many rounds the holder gives up."""


def hold(order: Order, *, answer: int, life: int, go: int, namespaces: dict[str, int]) -> None:
    """Run the container and exit with its code. An error before its command runs is written to `answer`.

    `life` is the reading end of a pipe whose other end only the supervisor has: when it closes, the holder ends.
    `go` is a pipe that the supervisor writes to once it has mapped the users of the holder's namespace.
    """
    code = NOT_STARTED
    try:
        signal.set_wakeup_fd(-1)
        for number in (*FORWARDED_SIGNALS, signal.SIGCHLD, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        os.setsid()
        if order["own_processes"]:
            linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)
        cgroups = [os.open(path, os.O_WRONLY | os.O_CLOEXEC) for path in order["cgroups"]]
        directory = os.open(order["log_directory"], os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        log = ContainerLog(directory, order["log_name"])
        listener = container_attach.listen(order["scratch"]) if order["stdin"] or order["terminal"] else None
        sandbox.enter_pod(order, namespaces)
        if order["isolated"]:
            sandbox.make_view(order)
        if not order["own_processes"]:
            linux.prctl(linux.PR_SET_CHILD_SUBREAPER, 1)
        if order["own_user"]:
            sandbox.enter_users(order, answer, go)
        linux.prctl(linux.PR_SET_DUMPABLE, 0)
        streams, feed, child = _launch(order, answer, cgroups)
        os.close(answer)
        extra = (listener.fileno(),) if listener is not None else ()
        _close_others(keep=(*streams, feed, life, directory, log.descriptor, *extra))
        attached = _attachments(order, listener, feed, streams)
        code = _Holder(child, log, streams, life, is_first=order["own_processes"], attached=attached).run()
    except BaseException as error:  # no exception may reach the supervisor's code in this process
        try:
            is_full = isinstance(error, OSError) and error.errno == errno.ENOSPC
            os.write(answer, (sandbox.NO_SPACE if is_full else b"") + _message(error).encode()[:MAX_ERROR_BYTES])
        except OSError:
            pass
    os._exit(code)


def _attachments(
    order: Order, listener: socket.socket | None, feed: int, streams: dict[int, bytes]
) -> Attachments | None:
    if listener is None:
        return None
    terminal = next(iter(streams)) if order["terminal"] else -1
    return Attachments(listener, feed=feed, terminal=terminal, once=order["stdin_once"])


def _launch(order: Order, answer: int, cgroups: list[int]) -> tuple[dict[int, bytes], int, int]:
    """Start the command: its output streams, the writing end of its input (-1: none), and its PID."""
    streams, feed, ends = _make_streams(order)
    same_rights = order["uid"] is None and order["gid"] is None and order["groups"] is None
    if order["own_processes"] and same_rights and not cgroups and not order["terminal"]:
        child = _spawn(order, ends)
    else:
        child = _fork(order, ends, answer, cgroups)
    for end in {*ends}:
        os.close(end)
    return streams, feed, child


def _make_streams(order: Order) -> tuple[dict[int, bytes], int, tuple[int, int, int]]:
    """The holder's ends and the command's: pipes, or one terminal for all three streams."""
    if order["terminal"]:
        master, slave = terminals.open_terminal()
        if order["uid"] is not None:
            os.fchown(slave, order["uid"], -1)
        return {master: b"stdout"}, master if order["stdin"] else -1, (slave, slave, slave)
    out, out_end = os.pipe()
    err, err_end = os.pipe()
    if order["stdin"]:
        stdin, feed = os.pipe()
    else:
        stdin, feed = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC), -1
    if order["uid"] is not None:
        for end in (stdin, out_end, err_end) if order["stdin"] else (out_end, err_end):
            os.fchown(end, order["uid"], -1)  # so that it can be opened again as /dev/stdout
    return {out: b"stdout", err: b"stderr"}, feed, (stdin, out_end, err_end)


def _spawn(order: Order, ends: tuple[int, int, int]) -> int:
    """Start without forking this process; what the command inherits is set on the holder, where it has no effect."""
    sandbox.become(order)
    os.environ["PATH"] = order["environment"].get("PATH", os.defpath)
    actions = [(os.POSIX_SPAWN_DUP2, end, number) for number, end in enumerate(ends)]
    program, *_ = order["argv"]
    try:
        return os.posix_spawnp(program, order["argv"], order["environment"], file_actions=actions, setsid=True)
    except OSError as error:
        raise OSError(error.errno, f"exec {program}: {os.strerror(error.errno or 0)}") from None


def _fork(order: Order, ends: tuple[int, int, int], answer: int, cgroups: list[int]) -> int:
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)
            if order["terminal"]:
                terminals.take_terminal(ends[0])
            for number, end in enumerate(ends):
                os.dup2(end, number)
            for cgroup in cgroups:
                os.write(cgroup, b"0")
            sandbox.become(order)
            linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)  # which a change of users takes back
            linux.prctl(linux.PR_SET_DUMPABLE, 1)
            _execute(order["argv"], order["environment"])
        except BaseException as error:
            what = "" if isinstance(error, sandbox.NoWorkingFolder) else f"exec {order['argv'][0]}: "
            os.write(answer, f"{what}{_reason(error)}".encode()[:MAX_ERROR_BYTES])
        os._exit(NOT_STARTED)
    return child


def _execute(argv: list[str], environment: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.execvpe(argv[0], argv, environment)


def _message(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__


def _reason(error: BaseException) -> str:
    return os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)


def _close_others(keep: tuple[int, ...]) -> None:
    last = 3
    for descriptor in sorted(keep):
        if descriptor >= last:
            os.closerange(last, descriptor)
            last = descriptor + 1
    os.closerange(last, MAX_DESCRIPTOR)
    nothing = os.open("/dev/null", os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    os.close(nothing)


class _Holder:
    """Waits for the command and reads its output."""

    def __init__(
        self,
        child: int,
        log: ContainerLog,
        streams: dict[int, bytes],
        life: int,
        *,
        is_first: bool,
        attached: Attachments | None = None,
    ) -> None:
        self._child, self._log, self._streams, self._life, self._is_first = child, log, streams, life, is_first
        self._attached = attached
        self._open = list(streams)  # in this order, so that stdout is read before stderr
        self._code: int | None = None
        self._woken, wake = os.pipe()
        for end in (self._woken, wake):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        for number in FORWARDED_SIGNALS:
            signal.signal(number, self._forward_signal)

    def run(self) -> int:
        poll = select.poll()
        watched: dict[int, int] = {}
        self._reap()
        while self._code is None:
            is_behind = self._attached is not None and self._attached.is_behind
            watched = self._watch(poll, watched, is_behind=is_behind)
            ready = poll.poll(container_attach.STUCK_CLIENT_TIMEOUT_SECONDS * 1000 if is_behind else None)
            for descriptor, events in ready:
                self._happened(descriptor, events)
            if not ready and self._attached is not None:
                self._attached.drop_stuck_clients()
        self._take_rest()
        if not self._is_first:
            self._end_all()
        if self._attached is not None:
            self._attached.finish()
        return self._code

    def _watch(self, poll: select.poll, watched: dict[int, int], *, is_behind: bool) -> dict[int, int]:
        """Poll what is needed now; output is not read while an attached client is behind."""
        wanted = {self._woken: select.POLLIN, self._life: select.POLLIN}
        if not is_behind:
            wanted |= dict.fromkeys(self._open, select.POLLIN)
        if self._attached is not None:
            for descriptor, events in self._attached.wanted().items():
                wanted[descriptor] = wanted.get(descriptor, 0) | events
        for descriptor in watched.keys() - wanted.keys():
            poll.unregister(descriptor)
        for descriptor, events in wanted.items():
            if watched.get(descriptor) != events:
                poll.register(descriptor, events)
        return wanted

    def _happened(self, descriptor: int, events: int) -> None:
        if descriptor == self._life:
            self._end_all()
            os._exit(NOT_STARTED + signal.SIGKILL)
        if descriptor == self._woken:
            self._drain_wakeups()
            self._reap()
        elif descriptor in self._open and events & ~select.POLLOUT and self._take(descriptor) == 0:
            self._open.remove(descriptor)
        if self._attached is not None and descriptor not in (self._woken, self._life):
            self._attached.happened(descriptor, events)

    def _forward_signal(self, number: int, _frame: object) -> None:
        """Forward the signal to the command's process group, as a terminal would."""
        try:
            os.killpg(self._child, number)
        except OSError:
            pass

    def _reap(self) -> None:
        while True:
            try:
                process, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if process == 0:
                return
            if process == self._child:
                ended = os.waitstatus_to_exitcode(status)
                self._code = ended if ended >= 0 else 128 - ended

    def _drain_wakeups(self) -> None:
        try:
            while os.read(self._woken, 512):
                pass
        except BlockingIOError:
            pass

    def _take(self, descriptor: int) -> int | None:
        """The number of bytes read: 0 at the end, None when none are available."""
        try:
            output = os.read(descriptor, IO_CHUNK_BYTES)
        except BlockingIOError:
            return None
        except OSError:
            return 0  # a terminal that no process has open
        if output:
            self._log.write(self._streams[descriptor], output)
            if self._attached is not None:
                self._attached.write(self._streams[descriptor], output)
        return len(output)

    def _take_rest(self) -> None:
        """Read what is in the pipes; processes that still have them open are killed afterwards."""
        for descriptor in self._streams:
            os.set_blocking(descriptor, False)
            while self._take(descriptor):
                pass
        self._log.finish()

    def _end_all(self) -> None:
        """Kill every process below this one: the whole namespace, or all descendants."""
        if self._is_first:
            try:
                os.kill(-1, signal.SIGKILL)
            except OSError:
                pass
            return
        for _ in range(MAX_KILL_ROUNDS):
            children = descendants(os.getpid())
            if not children:
                return
            for process in children:
                try:
                    os.kill(process, signal.SIGKILL)
                except OSError:
                    pass
            self._reap()


def descendants(process: int) -> list[int]:
    """The PIDs of all processes below one, read from /proc."""
    found, waiting = [], [process]
    while waiting:
        parent = waiting.pop()
        try:
            with open(f"/proc/{parent}/task/{parent}/children") as children:
                below = [int(each) for each in children.read().split()]
        except OSError:
            continue
        found += below
        waiting += below
    return found
