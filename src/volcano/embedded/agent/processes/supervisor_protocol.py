"""What the agent and its supervisor say to each other: JSON lines over a Unix socket, descriptors alongside.

Standard library only, for the supervisor imports it. A request has a number and gets one reply of that number;
`exited` and `exec_exited` come unasked.
"""

from __future__ import annotations

import json
from typing import Any, TypedDict

VERSION = 1
MAX_MESSAGE_BYTES = 4 * 1024 * 1024
SOCKET = "supervisor.sock"
LOCK = "supervisor.lock"
JOURNAL = "containers.journal"


class Mount(TypedDict):
    """One mount of a container, made in the order given. Sources are of the machine, targets of the container."""

    kind: str  # bind, tmpfs, devpts, hide
    source: str
    target: str
    options: str
    read_only: bool


class Wire(TypedDict):
    """How a pod is connected: its address, and the bridge its device is on."""

    bridge: str
    device: str
    address: str
    prefix: int
    gateway: str
    mtu: int


class Order(TypedDict):
    """All that is needed to start a container."""

    container: str  # "<pod uid>/<name>/<attempt>"
    pod: str
    argv: list[str]
    environment: dict[str, str]
    cwd: str
    hostname: str
    root: str
    scratch: str  # a folder for layers over folders that lack a mount point
    mounts: list[Mount]
    isolated: bool  # mounts and hostname of its own
    own_processes: bool  # a PID namespace of its own
    own_user: bool  # a user namespace of its own, with the same users in it
    limits: dict[str, list[int]]  # rlimits: name → soft, hard
    cgroups: list[str]  # files to write the process's number to
    uid: int | None
    gid: int | None
    groups: list[int] | None
    privileged: bool
    log_directory: str
    log_name: str
    terminal: bool
    stdin: bool  # its input comes from those who attach to it
    stdin_once: bool  # and ends with the first of them


class ProcessRecord(TypedDict):
    """A container the supervisor knows: running, ended (`exit_code` set), or lost with an earlier supervisor."""

    container: str
    pid: int
    started: float
    finished: float | None
    exit_code: int | None
    is_lost: bool
    oom_killed: bool


def encode(message: Any) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def decode(line: bytes) -> dict[str, Any]:
    message: dict[str, Any] = json.loads(line)
    return message
