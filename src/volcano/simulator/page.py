"""report.html: one page without outside references that shows what became of the jobs under each policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any, Final

import msgspec

from volcano.simulator.clusters import capacity
from volcano.simulator.comparison import PolicyComparison
from volcano.simulator.fairness import share_samples
from volcano.simulator.figures import requested
from volcano.simulator.jobs import JobOutcome
from volcano.simulator.table import rows

DRAWN_JOBS: Final = 3_000  # on the chart of nodes; a browser becomes slow with many more rectangles
MAX_DRAWN_ATTEMPTS: Final = 20  # of one job, that were lost
SHARE_DIGITS: Final = 5
MARK: Final = "@DATA@"


def page(comparison: PolicyComparison) -> str:
    """The data stands in the page as JSON; nothing in it can end the element that holds it."""
    text = msgspec.json.encode(_page_content(comparison)).decode().replace("<", "\\u003c")
    template = resources.files("volcano.simulator").joinpath("page.html").read_text(encoding="utf-8")
    return template.replace(MARK, text)


def _page_content(comparison: PolicyComparison) -> dict[str, Any]:
    added = [change.node.metadata.name for change in comparison.changes if change.is_there]
    names = dict.fromkeys([*(node.metadata.name for node in comparison.nodes), *added])
    row_of = {name: row for row, name in enumerate(names)}
    cpus = capacity(comparison.nodes).get("cpu", 0.0)
    report = comparison.report()
    begin = min((job.submit for job in comparison.jobs), default=0.0)
    end = max((run.now for run in comparison.runs.values()), default=begin)
    return {
        "begin": begin,
        "end": end,
        "about": f"{len(comparison.jobs):,} jobs on {len(comparison.nodes):,} nodes, seed {comparison.seed}",
        "nodes": len(row_of),
        "drawn": DRAWN_JOBS,
        "rows": rows(report),
        "policies": {
            name: {
                "jobs": [_drawn(outcome, cpus, row_of) for outcome in run.outcomes.values()],
                "queues": {
                    queue: {
                        "held": [round(sample.held, SHARE_DIGITS) for sample in samples],
                        "deserved": [round(sample.deserved, SHARE_DIGITS) for sample in samples],
                    }
                    for queue, samples in share_samples(run.timelines, comparison.queues, begin, end).items()
                },
                "evictions": sum(outcome.evictions for outcome in run.outcomes.values()),
            }
            for name, run in comparison.runs.items()
        },
    }


def _drawn(outcome: JobOutcome, cpus: float, row_of: Mapping[str, int]) -> list[object]:
    job = outcome.job
    share = round(requested(job).get("cpu", 0.0) / cpus, 9) if cpus else 0.0
    lost = [[each.start, each.end, _rows_of(each.nodes, row_of)] for each in outcome.earlier[:MAX_DRAWN_ATTEMPTS]]
    rows_taken = _rows_of(outcome.nodes, row_of)
    times = [outcome.start, outcome.end, share, rows_taken, outcome.last_start]
    return [job.name, job.submit, *times, job.queue, outcome.evictions, lost]


def _rows_of(nodes: Sequence[str], row_of: Mapping[str, int]) -> list[int]:
    return _ranges(sorted(row_of[name] for name in nodes if name in row_of))


def _ranges(rows_taken: Sequence[int]) -> list[int]:
    """First and last of each run of neighbouring rows, one after the other."""
    found: list[int] = []
    for row in rows_taken:
        if found and found[-1] == row - 1:
            found[-1] = row
        else:
            found += [row, row]
    return found
