"""Jobs from an exported history."""

from __future__ import annotations

from pathlib import Path

from volcano.simulator.workloads.history import read_history

LINES = """\
{"name": "a", "submit": "2026-03-01T08:00:00Z", "start": "2026-03-01T08:01:00Z", "end": "2026-03-01T08:11:00Z", "queue": "research", "estimate": 900, "minAvailable": 2, "roles": [{"name": "worker", "count": 3, "requests": {"cpu": "2"}}]}
{"name": "b", "submit": "2026-03-01T08:00:30Z", "roles": [{"name": "worker", "count": 1}]}
not json
{"name": "a", "submit": 0, "start": 1, "end": 2, "roles": [{"name": "w", "count": 1}]}
{"name": "c", "submit": "2026-03-01T08:02:00Z", "start": "2026-03-01T08:02:00Z", "end": "2026-03-01T08:03:00Z", "roles": [{"name": "w", "count": 1, "requests": {"cpu": "lots"}}]}
{"name": "d", "submit": "2026-03-01T08:05:00Z", "start": "2026-03-01T08:05:00Z", "end": "2026-03-01T08:06:00Z", "roles": [{"name": "w", "count": 1, "nodeSelector": {"zone": "a"}}]}
"""


def test_finished_jobs_are_read_and_the_rest_is_named(tmp_path: Path) -> None:
    file = tmp_path / "history.jsonl"
    file.write_text(LINES)

    found = read_history(file)

    a, d = found.jobs
    assert (a.name, a.submit, a.run_time, a.estimate, a.queue, a.min_available, a.pods) == (
        "a", 0.0, 600.0, 900.0, "research", 2, 3,
    )  # fmt: skip
    assert (d.submit, d.run_time, d.roles[0].spec) == (300.0, 60.0, {"nodeSelector": {"zone": "a"}})
    assert found.unreadable.count == 4
    assert found.unreadable.named[0] == "line 2: start or end is not given: how long the job runs is not known"
    assert [job.name for job in read_history(file, first=1).jobs] == ["d"]
