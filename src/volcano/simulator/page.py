"""report.html: one page without outside references that shows what became of the jobs under each policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any, Final

import msgspec

from volcano.simulator.clusters import capacity
from volcano.simulator.comparison import PolicyComparison
from volcano.simulator.figures import requested
from volcano.simulator.jobs import JobOutcome
from volcano.simulator.table import rows

DRAWN_JOBS: Final = 3_000  # on the chart of nodes; a browser becomes slow with many more rectangles
MARK: Final = "@DATA@"


def page(comparison: PolicyComparison) -> str:
    """The data stands in the page as JSON; nothing in it can end the element that holds it."""
    text = msgspec.json.encode(_page_content(comparison)).decode().replace("<", "\\u003c")
    template = resources.files("volcano.simulator").joinpath("page.html").read_text(encoding="utf-8")
    return template.replace(MARK, text)


def _page_content(comparison: PolicyComparison) -> dict[str, Any]:
    row_of = {node.metadata.name: row for row, node in enumerate(comparison.nodes)}
    cpus = capacity(comparison.nodes).get("cpu", 0.0)
    report = comparison.report()
    return {
        "about": f"{len(comparison.jobs):,} jobs on {len(comparison.nodes):,} nodes, seed {comparison.seed}",
        "nodes": len(comparison.nodes),
        "drawn": DRAWN_JOBS,
        "rows": rows(report),
        "policies": {
            name: {"jobs": [_drawn(outcome, cpus, row_of) for outcome in run.outcomes.values()]}
            for name, run in comparison.runs.items()
        },
    }


def _drawn(outcome: JobOutcome, cpus: float, row_of: Mapping[str, int]) -> list[object]:
    job = outcome.job
    share = round(requested(job).get("cpu", 0.0) / cpus, 9) if cpus else 0.0
    ranges = _ranges(sorted(row_of[name] for name in outcome.nodes if name in row_of))
    return [job.name, job.submit, outcome.start, outcome.end, share, ranges, outcome.last_start]


def _ranges(rows_taken: Sequence[int]) -> list[int]:
    """First and last of each run of neighbouring rows, one after the other."""
    found: list[int] = []
    for row in rows_taken:
        if found and found[-1] == row - 1:
            found[-1] = row
        else:
            found += [row, row]
    return found
