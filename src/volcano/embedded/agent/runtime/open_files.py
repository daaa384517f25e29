"""How many files a process of a pod may open. KubeRay, for one, raises its limit and fails where it cannot."""

from __future__ import annotations

import contextlib
import os
import resource
from pathlib import Path
from typing import Final

MAX_OPEN_FILES: Final = 1_048_576
CAP_SYS_RESOURCE: Final = 24  # the right to raise a hard limit


def open_files_limit() -> int:
    """The limit that pods get: this process' hard limit, or MAX_OPEN_FILES where it may raise that."""
    with contextlib.suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/self/status").read_text().splitlines()
        capabilities = next(line.split()[1] for line in lines if line.startswith("CapEff:"))
        if int(capabilities, 16) >> CAP_SYS_RESOURCE & 1 and os.geteuid() == 0:
            return MAX_OPEN_FILES
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return MAX_OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_OPEN_FILES)
