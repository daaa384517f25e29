"""Ways out of a pod, tried by a pod of root's agent, as the default user and as root, and by one of an ordinary user."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import needs
from tests.system.agent.escapes import AS_ROOT, SHARED_NETWORK
from tests.system.agent.test_agent_security import ORDINARY_USER, _environment, _works

MIN_WAYS = 60
TIMEOUT_SECONDS = 120


@pytest.fixture
def stage_folder() -> Iterator[Path]:
    """Not below /tmp, which every pod has its own of: the ways would be held for that reason alone."""
    folder = Path(tempfile.mkdtemp(prefix="volcano-escapes-", dir="/var/lib" if needs.IS_ROOT else Path.home()))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def attack(folder: Path, as_user: list[str], python: str, *words: str) -> tuple[str, dict[str, str]]:
    told = subprocess.run(
        [*as_user, python, "-m", "tests.system.agent.escapes", str(folder), *words],
        capture_output=True, text=True, timeout=TIMEOUT_SECONDS, env=_environment(), cwd="/", check=False,
    )  # fmt: skip
    assert told.returncode == 0, told.stderr[-4000:]
    answer = json.loads(told.stdout.splitlines()[-1])
    for way, result in answer["ways"].items():
        print(f"{answer['tier']:5} {way:45} {result}")
    assert len(answer["ways"]) >= MIN_WAYS
    return answer["tier"], answer["ways"]


def broken(ways: dict[str, str]) -> dict[str, str]:
    return {way: result for way, result in ways.items() if result != "held"}


@needs.NAMESPACES
@pytest.mark.parametrize("pods_as", ["", pytest.param(AS_ROOT, marks=needs.ROOT)], ids=["default user", "root"])
def test_no_way_leads_out_of_a_pod(stage_folder: Path, pods_as: str):
    tier, ways = attack(stage_folder, [], sys.executable, *filter(None, (pods_as,)))

    allowed = () if tier == "root" else SHARED_NETWORK
    assert {way: result for way, result in broken(ways).items() if way not in allowed} == {}


@pytest.mark.root
@needs.ROOT
@needs.SETPRIV
def test_no_way_leads_out_of_a_pod_of_an_ordinary_user(stage_folder: Path):
    python = next((path for path in (sys.executable, "/usr/bin/python3") if _works(ORDINARY_USER, path)), None)
    if python is None:
        pytest.skip(
            needs.reason("no Python that an ordinary user may run sees this package", "install into /opt or /usr")
        )
    os.chown(stage_folder, 1000, 1000)

    tier, ways = attack(stage_folder, ORDINARY_USER, python)

    assert tier == "user"
    assert set(broken(ways)) <= SHARED_NETWORK, broken(ways)
