"""report.html."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from volcano.simulator.clusters import equal_nodes
from volcano.simulator.comparison import PolicyComparison
from volcano.simulator.jobs import Role, WorkloadJob
from volcano.simulator.page import page
from volcano.simulator.policies import shipped_policy

HOSTILE = "</script><script>alert(1)</script>"


def compared() -> PolicyComparison:
    jobs = [
        WorkloadJob(f"j{index}", 10.0 * index, 30.0, (Role("task", 1 + index % 3, {"cpu": "1"}),), estimate=30.0)
        for index in range(8)
    ]
    comparison = PolicyComparison(equal_nodes(4, "1"), jobs)
    comparison.run([shipped_policy("fcfs"), shipped_policy("sjf-easy")])
    return comparison


def test_the_page_holds_every_job_under_every_policy() -> None:
    content = re.search(r'id="data">(.*?)</script>', page(compared()), re.DOTALL)

    assert content is not None
    data = json.loads(content[1])
    assert {name: len(of["jobs"]) for name, of in data["policies"].items()} == {"fcfs": 8, "sjf-easy": 8}
    name, submit, start, end, share, (first, last), last_start, queue, evictions, lost = data["policies"]["fcfs"][
        "jobs"
    ][0]
    assert (name, submit, start, end, share, last_start) == ("j0", 0.0, 0.0, 30.0, 0.25, 0.0)
    assert (queue, evictions, lost) == ("default", 0, [])
    assert len(data["policies"]["fcfs"]["queues"]["default"]["held"]) == 240
    assert 0 <= first == last < 4
    assert data["rows"][0]["title"] == "finished"


def test_the_page_needs_nothing_from_outside() -> None:
    assert re.findall(r"(?:src|href)=|https?://|@import|url\(", page(compared())) == []


def test_a_name_cannot_end_the_element_that_holds_the_data() -> None:
    comparison = compared()
    comparison.runs[HOSTILE] = comparison.runs.pop("fcfs")
    comparison.doubts.clear()

    assert page(comparison).count("</script>") == page(compared()).count("</script>")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs the program chromium")
def test_a_browser_draws_the_plots_of_both_policies(tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(page(compared()), encoding="utf-8")
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]

    done = subprocess.run([*command, "--dump-dom", file.as_uri()], capture_output=True, text=True, timeout=120)

    drawn = done.stdout.partition("<script")[0]  # what the scripts have drawn stands before them
    assert drawn.count('<svg viewBox="0 0 560 190"') == 8
    assert drawn.count('class="band"') == 2
    assert drawn.count('class="gantt"') == 2
    assert len(re.findall(r"<rect [^>]*data-job=", drawn)) >= 16
    assert "NaN" not in drawn
