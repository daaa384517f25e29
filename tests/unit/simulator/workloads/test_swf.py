"""Reading traces in the Standard Workload Format."""

from __future__ import annotations

from pathlib import Path

from volcano.simulator.workloads.swf import read_swf

LINES = """; Version: 2.2
1 10 -1 60 4 -1 -1 4 120 -1 1 7 -1 -1 0 -1 -1 -1
2 20 -1 30 -1 -1 -1 2 -1 -1 1 -1 -1 -1 0 -1 -1 -1

3 30 -1 many 1 -1 -1 -1 -1 -1 1 -1 -1 -1 0 -1 -1 -1
4 40 -1 -1 1 -1 -1 -1 -1 -1 1 -1 -1 -1 0 -1 -1 -1
5 50 -1
6 60 -1 5 0 -1 -1 0 -1 -1 1 -1 -1 -1 0 -1 -1 -1
"""


def write(folder: Path) -> Path:
    path = folder / "trace.swf"
    path.write_text(LINES)
    return path


def test_each_job_is_a_gang_of_one_cpu_pods_with_the_requested_time_as_estimate(tmp_path: Path) -> None:
    first, second = read_swf(write(tmp_path)).jobs

    assert (first.name, first.submit, first.run_time, first.pods, first.estimate) == ("job-1", 10, 60, 4, 120)
    assert first.user == "user-7"
    assert (second.pods, second.estimate) == (2, 30)


def test_a_job_can_be_one_pod_and_its_run_time_the_estimate(tmp_path: Path) -> None:
    first = read_swf(write(tmp_path), single_pod=True, exact=True).jobs[0]

    assert (first.pods, dict(first.roles[0].requests), first.estimate) == (1, {"cpu": "4"}, 60)


def test_unreadable_lines_are_counted_and_named(tmp_path: Path) -> None:
    unreadable = read_swf(write(tmp_path)).unreadable

    assert unreadable.count == 4
    assert unreadable.named == [
        "line 5: field 4 is not a number: 'many'",
        "line 6: the run time is not given",
        "line 7: 3 fields instead of 18",
        "line 8: neither allocated nor requested processors are given",
    ]


def test_a_slice_of_a_trace(tmp_path: Path) -> None:
    assert [job.name for job in read_swf(write(tmp_path), first=1, count=1).jobs] == ["job-2"]
