"""Who listens on a port of this machine, as far as /proc tells."""

from __future__ import annotations

import contextlib
import os
from itertools import islice
from pathlib import Path
from typing import Final

LISTENING: Final = "0A"
MAX_SOCKETS: Final = 100_000
MAX_COMMAND_CHARACTERS: Final = 80


def holder_of(port: int) -> str:
    """`process 12 (python -m http.server)`, or nothing where /proc does not tell."""
    inodes = _listening_inodes(port)
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            for handle in (process / "fd").iterdir():
                if os.readlink(handle) in inodes:
                    command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                    return f"process {process.name} ({command[:MAX_COMMAND_CHARACTERS]})"
    return ""


def _listening_inodes(port: int) -> set[str]:
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError), Path(table).open() as lines:
            for line in islice(lines, 1, MAX_SOCKETS):
                fields = line.split()
                if fields[3] == LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
                    found.add(f"socket:[{fields[9]}]")
    return found
