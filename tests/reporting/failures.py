"""What failed, written where tools/ci/second_try.py finds it: names, and which of them are property tests.

The file is written at the end of every run, so an absent or older file means that the run did not end.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

FAILURES = Path(".pytest_cache") / "failures.json"


class FailureList:
    """Collects failed tests on the controller, which receives the reports of all workers."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._failed: dict[str, bool] = {}

    def pytest_sessionstart(self) -> None:
        self._path.unlink(missing_ok=True)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed[without_group(report.nodeid)] = "property" in report.keywords

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        failed = [{"test": test, "property": is_property} for test, is_property in sorted(self._failed.items())]
        self._path.parent.mkdir(exist_ok=True)
        self._path.write_text(json.dumps({"exit": int(exitstatus), "failed": failed}, indent=1))


def without_group(nodeid: str) -> str:
    """xdist adds "@group" to the names of tests that must stay together."""
    head, bracket, parameters = nodeid.partition("[")
    if bracket:
        inside, closing, _group = parameters.rpartition("]")
        return f"{head}[{inside}{closing}"
    return head.partition("@")[0]


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput") and not config.option.collectonly:
        config.pluginmanager.register(FailureList(config.rootpath / FAILURES), "failure-list")
