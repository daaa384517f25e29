"""`volcano store` on a real data directory: a backup of a running server, damage after a kill, repair and restore."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.running_server import Client
from volcano.app.store_command import store_command

pytestmark = pytest.mark.timeout(180)
SECRETS = "/api/v1/namespaces/default/secrets"


@contextmanager
def serving(folder: Path) -> Iterator[Client]:
    """An API server of its own process, which ends by a kill."""
    command = [sys.executable, "-m", "volcano", "apiserver", "--data-dir", str(folder), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert "the API is at" in server.stdout.readline()
        try:
            yield Client(folder / "kubeconfig")
        finally:
            server.kill()


def store(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(store_command, [*arguments, "--data-dir", str(folder)])


def names(folder: Path) -> list[str]:
    with serving(folder) as api:
        return [each["metadata"]["name"] for each in api.get(SECRETS).body["items"]]


def test_a_backup_of_a_running_server_brings_back_what_damage_took(tmp_path: Path):
    folder, backup = tmp_path / "data", tmp_path / "backup.db"
    with serving(folder) as api:
        assert api.create(SECRETS, {"metadata": {"name": "before"}, "stringData": {"a": "hunter2"}}).status == 201
        assert store(folder, "check").exit_code == 1  # in use
        assert store(folder, "backup", str(backup)).exit_code == 0
        assert api.create(SECRETS, {"metadata": {"name": "after"}, "stringData": {"a": "hunter2"}}).status == 201
    assert b"hunter2" not in (folder / "volcano.db").read_bytes() + (folder / "volcano.db-wal").read_bytes()
    assert "all intact" in store(folder, "check").output
    assert "new key" in store(folder, "rotate-key").output
    assert names(folder) == ["after", "before"]

    (folder / "volcano.db").write_bytes(b"")
    (folder / "volcano.db-wal").unlink(missing_ok=True)
    assert "the file is empty, but revisions up to" in refused(folder)

    assert store(folder, "restore", str(backup)).exit_code == 0
    assert names(folder) == ["before"]


def refused(folder: Path) -> str:
    command = [sys.executable, "-m", "volcano", "apiserver", "--data-dir", str(folder), "--port", "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    return done.stderr
