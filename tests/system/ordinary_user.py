"""`volcano up` for a user who is not root: an account made for the tests where they run as root, otherwise this user's."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import needs
from tests.system.real_system import DEADLINE, ROOT, Up, environment

ACCOUNT = f"volcano-test-{os.getpid()}"
"""Of this process: tests beside it make and remove accounts of their own."""
WITHOUT_NAMESPACES = """
import ctypes, os, sys
asking, go = os.pipe(), os.pipe()
child = os.fork()
if child == 0:
    assert ctypes.CDLL(None).unshare(0x10000000) == 0
    os.write(asking[1], b"x")
    os.read(go[0], 1)
    open("/proc/sys/user/max_user_namespaces", "w").write("0")
    os.execvp(sys.argv[1], sys.argv[1:])
os.read(asking[0], 1)
for name in ("uid_map", "gid_map"):
    open(f"/proc/{child}/{name}", "w").write("0 0 4294967295")
os.write(go[1], b"x")
import signal
signal.signal(signal.SIGINT, lambda *_: os.kill(child, signal.SIGINT))
sys.exit(abs(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))
"""
"""Runs a command where no further user namespace can be made; only root can set that up."""

STARTS_ITSELF = "import subprocess, sys, volcano.app.up_command; subprocess.run([sys.executable, '-c', ''], check=True)"
"""setpriv itself may still start what the user may not."""


class OrdinaryUser:
    """Commands as a user who is not root, in a folder that belongs to that user."""

    def __init__(self, folder: Path, python: str, prefix: list[str]) -> None:
        self.folder, self.python, self.prefix = folder, python, prefix

    @property
    def environment(self) -> dict[str, str]:
        packages = [path for path in sys.path if path.endswith("site-packages")]
        paths = os.pathsep.join([str(ROOT / "src"), *packages])
        return environment(self.folder, PYTHONPATH=paths, PYTHONDONTWRITEBYTECODE="1")

    def run(self, *arguments: str | Path, timeout: float = DEADLINE) -> subprocess.CompletedProcess[str]:
        """`volcano ARGUMENTS` to its end."""
        return subprocess.run(
            [*self.prefix, self.python, "-m", "volcano", *map(str, arguments)],
            capture_output=True, text=True, timeout=timeout, env=self.environment, cwd=self.folder, check=False,
        )  # fmt: skip


class UserUp(Up):
    """A `volcano up` of an ordinary user."""

    def __init__(self, user: OrdinaryUser, *options: str, namespaces: bool = True) -> None:
        super().__init__(user.folder, *options)
        self.user = user
        self._outer = [] if namespaces else [sys.executable, "-c", WITHOUT_NAMESPACES]

    @property
    def command(self) -> list[str]:
        own = ["-m", "volcano", "up", "--data-dir", str(self.data), "--port", "0", *self.options]
        return [*self._outer, *self.user.prefix, self.user.python, *own]

    @property
    def environment(self) -> dict[str, str]:
        return self.user.environment


@contextlib.contextmanager
def running_user_up(user: OrdinaryUser, *options: str, namespaces: bool = True) -> Iterator[UserUp]:
    up = UserUp(user, *options, namespaces=namespaces)
    try:
        up.start()
        yield up
    finally:
        up.clean_up()


@contextlib.contextmanager
def ordinary_user() -> Iterator[OrdinaryUser]:
    """An account of its own where the tests run as root; skips where no Python can be run by it."""
    folder = Path(tempfile.mkdtemp(prefix="volcano-user-"))
    prefix: list[str] = []
    made = False
    try:
        if needs.IS_ROOT:
            account, made = _account()
            prefix = ["setpriv", "--reuid", str(account.pw_uid), "--regid", str(account.pw_gid), "--clear-groups"]
            (folder / "tmp").mkdir()
            for each in (folder, folder / "tmp"):
                os.chown(each, account.pw_uid, account.pw_gid)
        yield OrdinaryUser(folder, _python(prefix, folder), prefix)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if made:
            subprocess.run(["userdel", "--force", ACCOUNT], check=False, capture_output=True, timeout=60)


def _account() -> tuple[pwd.struct_passwd, bool]:
    with contextlib.suppress(KeyError):
        return pwd.getpwnam(ACCOUNT), False
    if shutil.which("useradd") is None or shutil.which("setpriv") is None:
        pytest.skip(needs.reason("no account can be made", "apt-get install passwd util-linux"))
    subprocess.run(["useradd", "--system", "--shell", "/bin/sh", ACCOUNT], check=True, capture_output=True, timeout=60)
    return pwd.getpwnam(ACCOUNT), True


def _python(prefix: list[str], folder: Path) -> str:
    user = OrdinaryUser(folder, "", prefix)
    for python in (sys.executable, "/usr/bin/python3"):
        tried = [*prefix, python, "-c", STARTS_ITSELF]
        with contextlib.suppress(OSError):
            done = subprocess.run(tried, env=user.environment, capture_output=True, timeout=DEADLINE, check=False)
            if done.returncode == 0:
                return python
    pytest.skip(needs.reason("no Python that an ordinary user may run sees this package", "install into /opt or /usr"))
