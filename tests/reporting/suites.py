"""Which suites run, and what a run left out: grouped by reason, each with the command that would make it run.

Tests that take minutes (`slow`) and tests on a real control plane (`kubernetes`) run only when asked for. They are
skipped and not deselected, so that every run counts them.
"""

from __future__ import annotations

from collections import Counter

import pytest

from tests.needs import HOW, reason

NOTHING = "(no command: see the reason)"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("suites")
    group.addoption("--slow", action="store_true", help="also run what takes minutes (make test-all)")
    group.addoption("--kubernetes", action="store_true", help="also run what needs a real kube-apiserver")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = {
        "slow": None if config.option.slow else reason("takes minutes", "make test-all"),
        "kubernetes": None
        if config.option.kubernetes
        else reason("runs on a real control plane", "make test-kubernetes"),
    }
    for item in items:
        for name, why in left_out.items():
            if why is not None and item.get_closest_marker(name) is not None:
                item.add_marker(pytest.mark.skip(reason=why))


def skipped_lines(reasons: list[str]) -> list[str]:
    """One line for each reason, the most frequent first."""
    lines = []
    for text, count in Counter(reasons).most_common():
        missing, _, command = text.removeprefix("Skipped: ").partition(HOW)
        lines.append(f"{count:6d}  {missing:52s}  {command or NOTHING}")
    return lines


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = terminalreporter.stats.get("skipped", [])
    reasons = [report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr) for report in reports]
    if reasons:
        terminalreporter.section(f"{len(reasons)} skipped, and what would make them run")
        for line in skipped_lines(reasons):
            terminalreporter.write_line(line)
