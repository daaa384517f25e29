"""`volcano store`: errors of the file are messages. tests/system/test_store_command.py has real files."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Never

import pytest
from click.testing import CliRunner

from volcano.app import store_command
from volcano.app.settings import STORE


@pytest.mark.parametrize("command", [["check"], ["rotate-key"], ["backup"]])
def test_a_database_that_cannot_be_read_is_told_without_a_traceback(
    command: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """As on a full disk, where SQLite cannot make its shared memory."""

    def failing(*_arguments: object) -> Never:
        raise sqlite3.OperationalError("disk I/O error")

    for name in ("rotate_key", "back_up"):
        monkeypatch.setattr(store_command.salvage, name, failing)
    monkeypatch.setattr(store_command, "verified", failing)
    (tmp_path / STORE).write_bytes(b"x")
    target = [str(tmp_path / "copy")] if command == ["backup"] else []

    result = CliRunner().invoke(store_command.store_command, [*command, *target, "--data-dir", str(tmp_path)])

    assert result.exit_code == 1
    assert result.output == f"Error: {tmp_path / STORE}: cannot be used: disk I/O error; it was left as it is\n"
