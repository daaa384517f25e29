"""The programs that busybox-like images bring: a folder of links to the machine's busybox, or of our own few programs.

The folder is made when the agent starts and mounted into containers of such images; the machine's own programs of the
same name come first.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from volcano.embedded.agent.containers import shell_programs

BUSYBOX_TIMEOUT_SECONDS: Final = 10
MOUNTED_AT: Final = "/run/volcano/programs"
ALWAYS_OURS: Final = ("nslookup",)
"""Debian's busybox (1.35) ends with 1 for a name that it found if one of the search domains lacks it; an init container
that waits for a service would wait for ever."""


def make_programs(folder: Path) -> str:
    """Make the folder anew; returns what is in it, in words."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, mode=0o755)
    folder.chmod(0o755)
    busybox = shutil.which("busybox")
    names = _applets(busybox) if busybox else []
    for name in set(names).difference(ALWAYS_OURS):
        (folder / name).symlink_to(str(busybox))
    for name in ALWAYS_OURS if names else shell_programs.PROGRAMS:
        script = folder / name
        command = shlex.join([sys.executable, "-I", shell_programs.__file__, name])
        script.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        script.chmod(0o755)
    if names:
        return f"busybox images have the programs of {busybox}, and nslookup of our own"
    return (
        f"busybox images have {len(shell_programs.PROGRAMS)} programs of our own, since busybox is not installed "
        "(apt-get install busybox)"
    )


def _applets(busybox: str) -> list[str]:
    try:
        done = subprocess.run(
            [busybox, "--list"], capture_output=True, text=True, timeout=BUSYBOX_TIMEOUT_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return []
    return [name for name in done.stdout.split() if "/" not in name]
