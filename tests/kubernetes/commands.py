"""Other people's command lines against a control plane: kubectl, and whatever else speaks through a kubeconfig."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from tests import needs

from .control_plane import ControlPlane


def run(plane: ControlPlane, *words: str, given: str = "") -> str:
    """What a program printed; it must succeed."""
    environment = {**os.environ, "KUBECONFIG": str(plane.kubeconfig)}
    done = subprocess.run(words, input=given, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def kubectl(plane: ControlPlane, *words: str, given: str = "") -> str:
    found = shutil.which("kubectl")
    if found is None:
        pytest.skip(needs.reason("kubectl is not installed", "make install"))
    return run(plane, found, *words, given=given)
