"""The journal of the supervisor: exits survive, lost containers are recognised."""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path

import pytest

from tests import needs
from volcano.embedded.agent.processes.journal import Journal
from volcano.embedded.agent.processes.supervisor_protocol import ProcessRecord


def a_record(name: str, code: int | None = None) -> ProcessRecord:
    return ProcessRecord(
        container=name, pid=1, started=1.0, finished=None, exit_code=code, is_lost=False, oom_killed=False
    )


def test_the_journal_remembers_exits_and_knows_what_was_lost(tmp_path: Path):
    journal = Journal(str(tmp_path / "journal"))
    for name in ("ended", "running", "forgotten"):
        journal.starting(a_record(name))
    journal.exited([a_record("ended", 3), a_record("forgotten", 0)])
    assert journal.flush()
    journal.forget(["forgotten"])

    after = Journal(str(tmp_path / "journal")).records

    assert after["ended"]["exit_code"] == 3 and not after["ended"]["is_lost"]
    assert after["running"]["is_lost"]


def test_a_torn_last_line_of_the_journal_is_passed_over(tmp_path: Path):
    path = tmp_path / "journal"
    journal = Journal(str(path))
    journal.exited([a_record("ended", 3)])
    journal.flush()
    with path.open("ab") as file:
        file.write(b'{"container": "half')

    assert list(Journal(str(path)).records) == ["ended"]


@needs.ROOT
def test_a_full_disk_refuses_starts_and_keeps_exits_until_there_is_space(tmp_path: Path):
    """Seen with a kill campaign: the supervisor ended with an exception, and all pods of the node with it."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "journal-test", str(tmp_path)], check=True)
    try:
        journal = Journal(str(tmp_path / "journal"))
        journal.starting(a_record("running"))
        ballast = tmp_path / "ballast"
        with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while file.write(b"x" * 512):
                pass
        with pytest.raises(OSError, match="No space left"):
            for number in range(10_000):
                journal.starting(a_record(f"refused-{number}"))
        journal.exited([a_record("running", 7)])
        assert not journal.flush()

        ballast.unlink()

        assert journal.flush()
        assert Journal(str(tmp_path / "journal")).records["running"]["exit_code"] == 7
    finally:
        subprocess.run(["umount", "-l", str(tmp_path)], check=True)
