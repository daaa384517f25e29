"""Whether a system runs in a data directory: who holds its lock, and whether its API server answers."""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path
from typing import Final

from volcano.api.errors import ApiError
from volcano.cli.embedded_system import is_complete
from volcano.machinery.client import Client
from volcano.machinery.kubeconfig import ConfigError, load_endpoint
from volcano.machinery.one_shot import OneShot, finish
from volcano.machinery.transport import Request

LOCK: Final = "lock"
KUBECONFIG: Final = "kubeconfig"
MAX_PROCESS_NUMBER_BYTES: Final = 32


def client_of(folder: Path) -> Client:
    """A client of the system in a data directory; ConfigError where it has left no kubeconfig."""
    return Client(OneShot(load_endpoint(folder / KUBECONFIG)), agent="volcano")


def answers(folder: Path) -> bool:
    """Whether the system is ready."""
    if not (folder / KUBECONFIG).is_file():
        return False
    try:
        finish(client_of(folder).raw(Request("GET", "/readyz")))
    except (ApiError, OSError, ConfigError):
        return False
    return True


def has_started(folder: Path) -> bool:
    """Whether the components of a system that answers have started, too, and its nodes are registered."""
    try:
        return finish(is_complete(client_of(folder)))
    except (OSError, ConfigError):
        return False


def is_held(folder: Path) -> bool:
    """Whether a process holds the data directory: its system runs, starts or stops."""
    try:
        handle = os.open(folder / LOCK, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    else:
        return False
    finally:
        os.close(handle)


def is_starting(folder: Path) -> bool:
    """Whether a `volcano up` has been typed that may not hold its data directory yet: programs load slowly at times."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError):
            words = [os.fsdecode(word) for word in (process / "cmdline").read_bytes().split(b"\0")[:-1]]
            at = words.index("up", 1)
            if os.path.basename(words[at - 1]) == "volcano" and ("--data-dir" not in words or str(folder) in words):
                return True
    return False


def holder(folder: Path) -> int | None:
    """The process that holds the data directory, which wrote its number into the lock."""
    if not is_held(folder):
        return None
    with contextlib.suppress(OSError, ValueError):
        return int((folder / LOCK).read_bytes()[:MAX_PROCESS_NUMBER_BYTES])
    return None


def supervisor_of(folder: Path) -> int | None:
    """The process that keeps pods of this data directory running, also after `volcano up --keep-pods` has ended."""
    wanted = os.fsencode(folder / "agent" / "supervisor")
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if wanted in (process / "cmdline").read_bytes().split(b"\0"):
                return int(process.name)
    return None
