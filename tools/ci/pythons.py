"""Run tests on the other Pythons that the project supports, as far as this machine has them.

usage: pythons.py [--quick] [PYTEST_ARGUMENT...]          (the unit tests where none is given)

--quick runs a selection in which new Pythons show first: types and decoding, clients and event loops, the command
line, and whole systems on virtual time. Environments are kept in ~/.cache/volcano/pythons, so only the first run
installs. A Python that is absent is fetched with uv where that works; otherwise it is named and is no error. Exit
status 1 when tests failed on one that is here.
"""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

VERSIONS = ("3.12", "3.13")
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "volcano" / "pythons"
INSTALL_LIMIT_SECONDS = 600
RUN_LIMIT_SECONDS = 1800
FETCH_LIMIT_SECONDS = 60
QUICK = (
    "tests/unit/api",
    "tests/unit/machinery",
    "tests/unit/cli",
    "tests/unit/flow",
    "tests/unit/sdk",
    "tests/unit/install",
    "tests/stories/test_queue_life.py",
)


def interpreter(version: str) -> str | None:
    """A Python of this version: on the PATH, of pyenv, or of uv."""
    places = [
        shutil.which(f"python{version}"),
        *sorted(glob.glob(f"{Path.home()}/.pyenv/versions/{version}.*/bin/python")),
    ]
    for found in places:
        if found and answers_as(found, version):
            return found
    if shutil.which("uv"):
        return found_by_uv(version) or fetched_by_uv(version)
    return None


def found_by_uv(version: str) -> str | None:
    asked = subprocess.run(["uv", "python", "find", version], capture_output=True, text=True, timeout=60)
    found = asked.stdout.strip()
    return found if asked.returncode == 0 and answers_as(found, version) else None


def fetched_by_uv(version: str) -> str | None:
    """Where the network has it; one that cannot be had in this time is absent."""
    try:
        subprocess.run(["uv", "python", "install", "-q", version], capture_output=True, timeout=FETCH_LIMIT_SECONDS)
    except subprocess.TimeoutExpired:
        return None
    return found_by_uv(version)


def answers_as(python: str, version: str) -> bool:
    asked = subprocess.run([python, "-V"], capture_output=True, text=True, timeout=60)
    return asked.returncode == 0 and asked.stdout.startswith(f"Python {version}.")


def environment(version: str, python: str) -> Path:
    """The environment of this Python, with the project and its test tools as they are declared now."""
    folder = CACHE / version
    if not (folder / "bin" / "python").exists():
        subprocess.run([python, "-m", "venv", folder], check=True, timeout=INSTALL_LIMIT_SECONDS)
    words = [folder / "bin" / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check", "-e", ".[dev]"]
    subprocess.run(words, check=True, timeout=INSTALL_LIMIT_SECONDS)
    return folder / "bin" / "python"


def main(arguments: list[str]) -> int:
    if "--quick" in arguments:
        arguments = [*(each for each in arguments if each != "--quick"), *QUICK]
    rows, failed = [], False
    for version in VERSIONS:
        python = interpreter(version)
        if python is None:
            rows.append((version, "absent", ""))
            continue
        began = time.monotonic()
        words = [
            environment(version, python),
            "-m",
            "pytest",
            "-p",
            "no:cacheprovider",
            "-n",
            "2",
            *(arguments or ["tests/unit"]),
        ]
        code = subprocess.run(words, timeout=RUN_LIMIT_SECONDS).returncode
        failed = failed or code != 0
        rows.append((version, "passed" if code == 0 else "FAILED", f"{time.monotonic() - began:.0f}"))
    print(f"{'Python':10}{'tests':10}seconds")
    for row in rows:
        print(f"{row[0]:10}{row[1]:10}{row[2]}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
