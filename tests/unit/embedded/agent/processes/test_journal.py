"""The journal of the supervisor: exits survive, lost containers are recognised."""

from __future__ import annotations

from pathlib import Path

from volcano.embedded.agent.processes.journal import Journal
from volcano.embedded.agent.processes.supervisor_protocol import ProcessRecord


def a_record(name: str, code: int | None = None) -> ProcessRecord:
    return ProcessRecord(
        container=name, pid=1, started=1.0, finished=None, exit_code=code, is_lost=False, oom_killed=False
    )


def test_the_journal_remembers_exits_and_knows_what_was_lost(tmp_path: Path):
    journal = Journal(str(tmp_path / "journal"))
    for name in ("ended", "running", "forgotten"):
        journal.started(a_record(name))
    journal.exited([a_record("ended", 3), a_record("forgotten", 0)])
    journal.forget(["forgotten"])

    after = Journal(str(tmp_path / "journal")).records

    assert after["ended"]["exit_code"] == 3 and not after["ended"]["is_lost"]
    assert after["running"]["is_lost"]


def test_a_torn_last_line_of_the_journal_is_passed_over(tmp_path: Path):
    path = tmp_path / "journal"
    Journal(str(path)).exited([a_record("ended", 3)])
    with path.open("ab") as file:
        file.write(b'{"container": "half')

    assert list(Journal(str(path)).records) == ["ended"]
