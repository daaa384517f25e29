"""What some tests need that a machine may lack: each need once, with the reason of the skip and the command that helps.

A skip's reason ends in `HOW` and that command, which tests/reporting/suites.py prints at the end of a run.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path

import pytest

from volcano.embedded.agent.kernel import linux

HOW = "; to run them: "
# Programs of the test tools (kubectl) are beside the interpreter, which need not be an activated environment's.
os.environ["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))

IS_ROOT = os.geteuid() == 0
CAN_ISOLATE = IS_ROOT or linux.is_available(linux.NEWUSER | linux.NEWNS | linux.NEWPID)


def reason(missing: str, command: str) -> str:
    return f"{missing}{HOW}{command}"


def _need(is_met: bool, missing: str, command: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(not is_met, reason=reason(missing, command))


def program(name: str, package: str) -> pytest.MarkDecorator:
    """A program that a Debian package brings."""
    return _need(shutil.which(name) is not None, f"{name} is not installed", f"apt-get install {package}")


MANY_MINUTES = _need(os.environ.get("LONG") == "yes", "takes many minutes", "LONG=yes make test-all")
KUBECTL = _need(shutil.which("kubectl") is not None, "kubectl is not installed", "make install")
ROOT = _need(IS_ROOT, "not running as root", "sudo make test")
NAMESPACES = _need(CAN_ISOLATE, "this user may not make namespaces", "sudo make test")
NETWORK_NAMESPACES = _need(
    IS_ROOT and linux.is_available(linux.NEWNET), "not root, or without network namespaces", "sudo make test"
)
CHROMEDRIVER = _need(
    shutil.which("chromedriver") is not None and importlib.util.find_spec("selenium") is not None,
    "chromedriver or selenium is not installed",
    "apt-get install chromium chromium-driver && pip install selenium",
)
MPI = program("mpiexec", "openmpi-bin")
SSHD = _need(Path("/usr/sbin/sshd").exists(), "sshd is not installed", "apt-get install openssh-server")
SETPRIV = program("setpriv", "util-linux")
LDD = program("ldd", "libc-bin")
APPTAINER = _need(
    shutil.which("apptainer") is not None or shutil.which("singularity") is not None,
    "neither Apptainer nor Singularity is installed",
    "install Apptainer (docs/images.md)",
)

CONTROL_PLANE = reason("the real control plane is not built", "make kubernetes")
