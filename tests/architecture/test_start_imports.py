"""What is imported before `volcano up` is ready, and by commands that ask once: import sets, since times differ."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.system.real_system import running_up

LATE_IN_UP = (
    "aiohttp", "alembic", "cel_expr_python", "jinja2", "numpy", "sqlalchemy", "volcano.api.cel", "volcano.cli",
    "volcano.controllers.job", "volcano.dashboard", "volcano.embedded.agent", "volcano.embedded.cluster",
    "volcano.history", "volcano.scheduler.framework", "volcano.scheduler.plugins", "volcano.simulator", "yaml",
)  # fmt: skip
NEVER_IN_LIST = (
    "aiohttp", "asyncio", "click", "cryptography", "numpy", "prometheus_client", "rich", "uvicorn", "uvloop", "yaml",
    "volcano.api.core", "volcano.api.schemas", "volcano.api.scheme", "volcano.app", "volcano.embedded",
)  # fmt: skip
NEVER_IN_HELP = (*NEVER_IN_LIST, "http", "msgspec", "ssl")
UP = """
import json, os, sys
import click
said = click.echo
def echo(message="", *arguments, **options):
    if "volcano is up" in str(message):
        print(json.dumps(sorted(sys.modules)), flush=True)
        os._exit(0)
    said(message, *arguments, **options)
click.echo = echo
sys.argv = ["volcano", "up", "--port", "0", "--dashboard", "0", "--data-dir", sys.argv[1]]
from volcano.__main__ import main
main()
"""
COMMAND = """
import json, sys
sys.argv = ["vcctl", *sys.argv[1:]]
from volcano.cli.programs import vcctl
try:
    vcctl()
except SystemExit as end:
    assert not end.code, end.code
print(json.dumps(sorted(sys.modules)))
"""


def imported_by(program: str, *arguments: str, **environment: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True, timeout=120, check=True,
    )  # fmt: skip
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.timeout(250)
def test_the_system_is_ready_before_its_components_are_imported(tmp_path: Path):
    for directory in ("a new one", "an existing one"):
        loaded = imported_by(UP, str(tmp_path / "data"))

        assert sorted(loaded & {*LATE_IN_UP}) == [], directory
    assert "volcano.admission.chain" not in loaded, "an existing directory has its queues"


@pytest.mark.timeout(250)
def test_a_list_of_jobs_imports_little(tmp_path: Path):
    with running_up(tmp_path, "--ephemeral", "--simulated-nodes", "1", "--dashboard", "off") as up:
        loaded = imported_by(COMMAND, "job", "list", KUBECONFIG=str(up.data / "kubeconfig"))

    assert sorted(loaded & {*NEVER_IN_LIST}) == []


def test_a_help_screen_imports_less():
    assert sorted(imported_by(COMMAND, "--help") & {*NEVER_IN_HELP}) == []
