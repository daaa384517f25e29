"""`python -m tests.frameworks [--small] [NAME …]`: runs frameworks one after the other and prints the table."""

from __future__ import annotations

import argparse
import sys

from tests.frameworks.framework import SMALL_MEGABYTES, Framework, all_frameworks
from tests.frameworks.session import Outcome, run_framework


def chosen(names: list[str], small: bool) -> list[Framework]:
    known = {framework.name: framework for framework in all_frameworks()}
    unknown = [name for name in names if name not in known]
    if unknown:
        sys.exit(f"unknown: {', '.join(unknown)}; there are: {', '.join(known)}")
    selected = [known[name] for name in names or known]
    return [framework for framework in selected if framework.is_small or not small]


def table(outcomes: list[Outcome]) -> str:
    lines = [f"{'framework':24} {'works':8} {'seconds':>8} {'installing':>10}"]
    for each in outcomes:
        lines.append(
            f"{each.framework.name:24} {each.works:8} {each.run_seconds:8.0f} {each.install_seconds:10.0f}  {each.why}".rstrip()
        )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.frameworks")
    parser.add_argument("names", nargs="*", help="which frameworks; all by default")
    parser.add_argument("--small", action="store_true", help=f"only what downloads less than {SMALL_MEGABYTES} MB")
    options = parser.parse_args()
    names = [name for word in options.names for name in word.split(",") if name]
    outcomes = []
    for framework in chosen(names, options.small):
        print(f"{framework.name} …", flush=True)
        outcomes.append(run_framework(framework))
    print(table(outcomes))
    return int(any(outcome.works == "no" for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
