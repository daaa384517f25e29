"""The protocol between the agent and its supervisor: JSON lines over a Unix socket, with file descriptors.

A request has a number and gets one reply with the same number; `exited` is an event without a request. A change that an
older agent or supervisor would not understand needs a new VERSION. Standard library only: the supervisor imports it.
"""

from __future__ import annotations

import json
from typing import Any, TypedDict

VERSION = 4
MAX_MESSAGE_BYTES = 4 * 1024 * 1024
MAX_DESCRIPTORS_PER_MESSAGE = 8
SOCKET = "supervisor.sock"
LOCK = "supervisor.lock"
JOURNAL = "containers.journal"
BRIDGE_PREFIX = "vc"
"""Of the bridges of pod networks; the rest of the name is that of the network's table of rules."""

WITHOUT_LINKS = "without-links"
"""Of a bind: the source is a real path, and a symbolic link that was put on it meanwhile is not followed."""
WITHOUT_DEVICES = "without-devices"
"""Of a bind: device files below the source cannot be opened; the source may be one itself, but no disk or memory."""


class Mount(TypedDict):
    """One mount of a container. Sources are paths on the machine, targets paths in the container."""

    kind: str  # bind, tmpfs, devpts, hide, layer (what is written at the target is the container's own), devices
    source: str
    part: str  # of the source: a relative path, on which no symbolic link is followed
    target: str
    # Words with commas: of devices the files of cards below /dev, of a bind those above, of a layer its owner.
    options: str
    read_only: bool


class Wire(TypedDict):
    """A pod's network connection: its address, its device, and the bridge that the device is on."""

    bridge: str
    device: str
    address: str
    prefix: int
    gateway: str
    mtu: int


class Order(TypedDict):
    """Everything the supervisor needs to start a container."""

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
    read_only: bool  # the image's root too, not only the machine's files
    own_processes: bool  # a PID namespace of its own
    own_user: bool  # a user namespace of its own, with the same user numbers
    limits: dict[str, list[int]]  # rlimits: name → soft, hard
    cgroups: list[str]  # files to write the process's number to
    cpus: list[int]  # to which its processes are bound where control groups do not do it; empty: all
    uid: int | None
    gid: int | None
    groups: list[int] | None
    privileged: bool
    capabilities: list[int]  # what its root may have; not used when privileged
    no_new_privileges: bool  # programs that are set-uid, or have capabilities, do not give them
    refuses_calls: bool  # the seccomp filter is set
    log_directory: str
    log_name: str
    terminal: bool
    stdin: bool  # attached clients write to its input
    stdin_once: bool  # its input ends when the first of them leaves


class ProcessRecord(TypedDict):
    """A container's process: running, ended (`exit_code` set), or lost with an earlier supervisor."""

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
