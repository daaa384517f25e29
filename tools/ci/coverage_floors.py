"""Print the line coverage of each package and fail where one is below its floor.

usage: coverage_floors.py COVERAGE_JSON

The floors are [tool.volcano.coverage-floors] in pyproject.toml, in per cent; a floor is raised when more is reached.
Processes that tests start are not measured, so packages that run as processes of their own show less than is tested.
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def package_of(file: str) -> str:
    """ "scheduler" for src/volcano/scheduler/loop.py, "embedded.agent" for what is below src/volcano/embedded/agent."""
    parts = Path(file).parts
    inside = parts[parts.index("volcano") + 1 : -1]
    depth = 2 if inside[:1] == ("embedded",) else 1
    return ".".join(inside[:depth]) or "volcano"


def by_package(report: dict[str, dict[str, dict[str, dict[str, int]]]]) -> dict[str, tuple[int, int]]:
    """Covered lines and all lines of each package."""
    found: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for file, row in report["files"].items():
        covered, lines = found[package_of(file)]
        summary = row["summary"]
        found[package_of(file)] = covered + summary["covered_lines"], lines + summary["num_statements"]
    return dict(found)


def main(path: Path) -> int:
    floors = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["volcano"]["coverage-floors"]
    packages = by_package(json.loads(path.read_text()))
    below = set(floors) - set(packages)
    print(f"{'lines':>7} {'covered':>8} {'floor':>6}  package")
    for name, (covered, lines) in sorted(packages.items()):
        percent = 100 * covered / lines if lines else 100.0
        floor = floors.get(name)
        if floor is not None and percent < floor:
            below.add(name)
        print(f"{lines:7d} {percent:7.1f}% {'' if floor is None else f'{floor}%':>6}  {name}")
    if below:
        print(f"below the floor: {', '.join(sorted(below))}")
    return 1 if below else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
