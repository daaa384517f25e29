"""The ten tasks of docs/first-hour.md are typed as printed, as root and as an ordinary user, and take no more steps."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import needs
from tests.documentation.blocks import read_page
from tests.documentation.session import type_in
from tests.kubernetes.control_plane import ControlPlane, binaries
from tests.system.ordinary_user import OrdinaryUser, ordinary_user
from tests.system.real_system import ROOT

PAGE = ROOT / "docs" / "first-hour.md"
MAX_STEPS = {
    "Install": 3,
    "The first job": 4,
    "Why a job waits": 3,
    "MPI": 2,
    "Logs": 2,
    "Queues": 3,
    "Another policy": 3,
    "To a cluster": 6,
    "Monitoring": 3,
    "Clean up": 2,
}
"""A task may take fewer steps than it did, never more."""
HEADING = re.compile(r"^## \d+\. (.+)$", re.M)
ROW = re.compile(r"^\| \[\d+\. (.+?)\]\(.*?\) \| (\d+) \|$", re.M)
CLONE = ("src", "examples", "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md")
NEEDED = {"MPI": ("mpiexec", "sshd")}
HOUR_SECONDS = 280
PACKAGE_ALONE = {"PIP_NO_DEPS": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
"""Nothing is downloaded. To pip, 0 in the second means that the build is not isolated."""


def tasks():
    """Title → block."""
    return dict(zip(HEADING.findall(PAGE.read_text()), read_page(PAGE).runs, strict=True))


def steps(script: str) -> list[str]:
    """One command a line; a line that ends in a backslash goes on in the next."""
    lines = script.replace("\\\n", " ").splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]


def test_no_task_takes_more_steps_than_before_and_the_table_counts_them():
    counted = {title: len(steps(block.script)) for title, block in tasks().items()}

    assert counted.keys() == MAX_STEPS.keys()
    assert {title: count for title, count in counted.items() if count > MAX_STEPS[title]} == {}
    assert {title: int(count) for title, count in ROW.findall(PAGE.read_text())} == counted


@pytest.mark.slow
@pytest.mark.timeout(HOUR_SECONDS + 60)
@pytest.mark.parametrize("who", ["root", "user"])
def test_the_first_hour_as_printed(who):
    if who == "root" and not needs.IS_ROOT:
        pytest.skip(needs.reason("not running as root", "sudo make test-all"))
    with newcomer(who) as user, cluster(user) as has_cluster:
        chosen = [title for title in tasks() if is_possible(title, has_cluster=has_cluster)]

        type_in([tasks()[title] for title in chosen], user.folder / "clone", settings(user), HOUR_SECONDS, user.prefix)


def is_possible(title: str, *, has_cluster: bool) -> bool:
    missing = [name for name in NEEDED.get(title, ()) if not shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")]
    return not missing and (title != "To a cluster" or has_cluster)


@contextlib.contextmanager
def newcomer(who: str) -> Iterator[OrdinaryUser]:
    """A user with an empty home and a fresh clone in it."""
    if who == "user":
        with ordinary_user() as user:
            clone(user)
            yield user
        return
    folder = Path(tempfile.mkdtemp(prefix="volcano-root-"))
    try:
        user = OrdinaryUser(folder, sys.executable, [])
        clone(user)
        yield user
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def clone(user: OrdinaryUser) -> None:
    place = user.folder / "clone"
    place.mkdir()
    for name in CLONE:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, place / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, place / name)
    own(user, place)


def own(user: OrdinaryUser, place: Path) -> None:
    if user.prefix:
        owner = user.folder.stat()
        for each in (place, *place.rglob("*")):
            os.chown(each, owner.st_uid, owner.st_gid, follow_symlinks=False)


@contextlib.contextmanager
def cluster(user: OrdinaryUser) -> Iterator[bool]:
    """A real control plane at ~/.kube/config, with one node; whether there is one on this machine."""
    programs = binaries()
    if programs is None:
        yield False
        return
    with tempfile.TemporaryDirectory() as folder, ControlPlane(Path(folder), programs) as plane:
        home = user.folder / ".kube"
        home.mkdir()
        (home / "config").write_bytes(plane.kubeconfig.read_bytes())
        own(user, home)
        agent = subprocess.Popen(
            [sys.executable, "-m", "volcano", "agent", "--kubeconfig", plane.kubeconfig, "--data-dir", f"{folder}/agent"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            yield True
        finally:
            agent.terminate()
            agent.wait(60)


def settings(user: OrdinaryUser) -> dict[str, str]:
    """The environment of a shell in which the package is not installed yet."""
    python = Path(user.python).parent if user.prefix else Path(sys.executable).resolve().parent
    search = [str(python), "/usr/local/bin", "/usr/bin", "/bin", str(Path(sys.executable).parent)]
    # What the package requires comes from the environment of the tests; the package itself is built and installed.
    variables = user.environment | {"PATH": ":".join(search), **PACKAGE_ALONE}
    variables["PYTHONPATH"] = variables["PYTHONPATH"].removeprefix(f"{ROOT / 'src'}:")
    return variables
