"""report.html."""

from __future__ import annotations

import html
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

needs_browser = pytest.mark.skipif(shutil.which("chromium") is None, reason="needs the program chromium")
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


ACTIONS = """<script>
const chart = () => document.querySelector(".gantt"), rectangle = () => document.querySelector("rect[data-job]");
const labels = () => [...chart().querySelectorAll("text")].map(each => each.textContent).join(" ");
const told = {errors: [], whole: labels(), columns: [document.querySelectorAll("[data-name]").length]};
window.addEventListener("error", event => told.errors.push(event.message));
rectangle().dispatchEvent(new MouseEvent("mousemove", {bubbles: true, clientX: 5000, clientY: 20}));
told.hint = document.getElementById("hint").textContent;
told.hintEnds = document.getElementById("hint").getBoundingClientRect().right <= innerWidth;
chart().dispatchEvent(new WheelEvent("wheel", {bubbles: true, cancelable: true, deltaY: -1, clientX: 300, clientY: 300}));
told.zoomed = labels();
chart().dispatchEvent(new MouseEvent("dblclick", {bubbles: true}));
told.again = labels();
document.querySelector("[data-policy='1']").click();
told.columns.push(document.querySelectorAll("[data-name]").length);
document.querySelector("[data-policy='1']").click();
told.columns.push(document.querySelectorAll("[data-name]").length);
told.overflows = document.documentElement.scrollWidth > innerWidth;
document.body.dataset.told = JSON.stringify(told);
</script></body>"""


def in_browser(content: str, folder: Path, *options: str) -> tuple[str, str]:
    """What a browser has made of the page, and what it says."""
    file = folder / "report.html"
    file.write_text(content, encoding="utf-8")
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"]
    command += ["--enable-logging=stderr", *options, "--dump-dom", file.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    return done.stdout, "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)


@pytest.mark.slow
@needs_browser
def test_a_browser_draws_the_plots_of_both_policies(tmp_path: Path) -> None:
    whole, said = in_browser(page(compared()), tmp_path)

    drawn = whole.partition("<script")[0]  # what the scripts have drawn stands before them
    assert drawn.count('<svg viewBox="0 0 560 190"') == 8
    assert drawn.count('class="band"') == 2
    assert drawn.count('class="gantt"') == 2
    assert len(re.findall(r"<rect [^>]*data-job=", drawn)) >= 16
    assert "NaN" not in drawn
    assert said == ""


@pytest.mark.slow
@needs_browser
@pytest.mark.parametrize("width", [500, 1280])
def test_the_chart_of_nodes_is_zoomed_and_hovered_and_policies_are_switched(tmp_path: Path, width: int) -> None:
    whole, said = in_browser(page(compared()).replace("</body>", ACTIONS), tmp_path, f"--window-size={width},900")

    found = re.search(r'data-told="([^"]*)"', whole)
    assert found is not None, said
    told = json.loads(html.unescape(found[1]))
    assert told["errors"] == []
    assert told["hint"].startswith("j0 (default)\nwaited 0 s, ran 30 s")
    assert told["hintEnds"]
    assert told["zoomed"] != told["whole"] == told["again"]
    assert told["columns"] == [2, 1, 2]
    assert not told["overflows"]
    assert said == ""
