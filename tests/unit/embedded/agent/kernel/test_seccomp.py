"""The filter of system calls, as the kernel applies it."""

from __future__ import annotations

import errno
import os
import platform
import subprocess
import sys

import pytest

from volcano.embedded.agent.kernel.seccomp import REFUSED_CALLS, filter_program

TRY = """
import ctypes, os, sys, threading
from volcano.embedded.agent.kernel import linux, seccomp
linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
assert seccomp.refuse_calls()
libc = ctypes.CDLL(None, use_errno=True)
for number in map(int, sys.argv[1:]):
    libc.syscall(number, -1, -1, -1, -1, -1, -1)
    print(ctypes.get_errno())
thread = threading.Thread(target=lambda: print(os.path.exists("/")))
thread.start()
thread.join()
print(os.waitstatus_to_exitcode(os.system("exit 3")))
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the numbers are of x86_64")
def test_refused_calls_fail_and_threads_and_processes_still_start():
    numbers = [str(number) for number, _ in REFUSED_CALLS.values()]

    told = subprocess.run(
        [sys.executable, "-c", TRY, *numbers], capture_output=True, text=True, check=True, env={**os.environ}
    ).stdout.split()

    assert told[: len(numbers)] == [str(errno.EPERM)] * len(numbers)
    assert told[len(numbers) :] == ["True", "3"]


def test_every_architecture_has_a_filter_of_its_own_or_none():
    assert filter_program("x86_64") != filter_program("aarch64")
    assert len(filter_program("aarch64")) % 8 == 0
    assert filter_program("vax") == b""
