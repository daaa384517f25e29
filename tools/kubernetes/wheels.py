"""Programs that are published as Python wheels, unpacked into a folder of their own: nothing is installed anywhere."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PATIENCE = 600


def cache() -> Path:
    """Where everything that is fetched or built for the tests is kept, outside the checkout."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "volcano"


def unpack(requirement: str, target: Path) -> None:
    """Put the files of one wheel, without what it depends on, into a folder, whole or not at all. Raises OSError."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".fetching-") as scratch:
        fresh = Path(scratch) / "wheel"
        try:
            done = subprocess.run(
                [*_installer(), "--no-deps", "--target", str(fresh), requirement],
                capture_output=True, text=True, timeout=PATIENCE,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise OSError(f"fetching {requirement} took more than {PATIENCE} s") from None
        if done.returncode != 0:
            raise OSError(f"{requirement} cannot be fetched: {done.stderr.strip()[-500:]}")
        try:
            fresh.rename(target)
        except OSError:
            if not target.is_dir():  # else somebody else was faster, with the same files
                raise


def _installer() -> list[str]:
    """pip, or uv where an environment was made without pip."""
    if importlib.util.find_spec("pip") is not None:
        quiet = ["-q", "--disable-pip-version-check", "--root-user-action=ignore", "--no-compile"]
        return [sys.executable, "-m", "pip", "install", *quiet]
    if uv := shutil.which("uv"):
        return [uv, "pip", "install", "-q", "--python", sys.executable]
    raise OSError("neither pip nor uv is here to fetch a wheel with")
