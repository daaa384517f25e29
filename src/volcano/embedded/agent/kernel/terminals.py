"""Pseudo-terminals, opened in the /dev/pts of the calling container. Standard library only."""

from __future__ import annotations

import fcntl
import os
import struct
import termios

TIOCSPTLCK = 0x40045431
TIOCGPTN = 0x80045430


def open_terminal() -> tuple[int, int]:
    """The two ends of a new terminal: the master, and the one for the command."""
    master = os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        fcntl.ioctl(master, TIOCSPTLCK, struct.pack("i", 0))
        number = struct.unpack("I", fcntl.ioctl(master, TIOCGPTN, bytes(4)))[0]
        return master, os.open(f"/dev/pts/{number}", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except BaseException:
        os.close(master)
        raise


def take_terminal(end: int) -> None:
    """Make it the controlling terminal of the caller, which leads a session without one."""
    fcntl.ioctl(end, termios.TIOCSCTTY, 0)


def resize(master: int, rows: int, columns: int) -> None:
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows & 0xFFFF, columns & 0xFFFF, 0, 0))
