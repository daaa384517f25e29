"""The machine's switch for IP forwarding, which all pod networks on it share: pods reach each other through it.

The first network turns it on and the last one that goes turns it off again, if it was off before. Which one is the last
is found by looking for bridges; who makes and removes them is network.py.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

SWITCH: Final = Path("/proc/sys/net/ipv4/ip_forward")
NOTES: Final = Path("/run")
"""A file there says that forwarding was off. It goes with the next start of the machine, as the switch does."""
DEVICES: Final = Path("/sys/class/net")
NAMESPACE: Final = Path("/proc/self/ns/net")


def turn_on() -> None:
    """Called when the network's own bridge is there, so that no other network turns it off. Raises OSError."""
    with _alone():
        if SWITCH.read_text().strip() == "1":
            return
        with contextlib.suppress(OSError):
            _note().touch(mode=0o600)
        SWITCH.write_text("1\n")


def turn_off_if_last(bridge_prefix: str) -> None:
    """Called when the network's own bridge is gone. Forwarding that was on before stays on. Raises OSError."""
    with _alone():
        if _note().exists() and not any(DEVICES.glob(f"{bridge_prefix}*/bridge")):
            SWITCH.write_text("0\n")
            _note().unlink()


def _note() -> Path:
    """Each network namespace has a switch of its own."""
    return NOTES / f"volcano-ip-forward-{NAMESPACE.stat().st_ino}"


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Between looking and writing no other agent does either. A machine without /run has one agent at a time."""
    try:
        descriptor = os.open(f"{_note()}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError:
        yield
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
