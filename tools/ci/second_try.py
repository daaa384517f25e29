"""A second try for what failed: each test alone, in a process of its own. No flaky test passes unnoticed.

usage: second_try.py FLAKY_FILE [PYTEST_OPTION...]

Reads the failures of the last run (tests/reporting/failures.py wrote them). A property test that failed has failed: its
counterexample is real, and another seed would only hide it. A test that passes alone is appended to FLAKY_FILE.
Exit status 0 when every failed test was flaky; .ci/run counts them over all suites.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

FAILURES = Path(".pytest_cache") / "failures.json"
TESTS_FAILED = 1
"""Pytest's exit status when tests ran and some failed; any other status means that the run itself went wrong."""
MAX_SECOND_TRIES = 20
TRY_LIMIT_SECONDS = 600


def passes_alone(test: str, options: list[str]) -> bool:
    words = [sys.executable, "-m", "pytest", "-n", "0", *options, test]
    try:
        return subprocess.run(words, timeout=TRY_LIMIT_SECONDS).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def main(flaky_file: Path, options: list[str]) -> int:
    if not FAILURES.is_file():
        print("the run did not get to its end, so nothing is tried again")
        return 1
    last = json.loads(FAILURES.read_text())
    failed = last["failed"]
    if last["exit"] != TESTS_FAILED or not failed:
        print(f"the run ended with status {last['exit']}, so nothing is tried again")
        return 1
    properties = [row["test"] for row in failed if row["property"]]
    for test in properties:
        print(f"property test, not tried again: {test}")
    others = [row["test"] for row in failed if not row["property"]]
    if len(others) > MAX_SECOND_TRIES:
        print(f"{len(others)} tests failed, more than {MAX_SECOND_TRIES}: none is tried again")
        return 1
    flaky = [test for test in others if passes_alone(test, options)]
    with flaky_file.open("a") as file:
        file.writelines(f"{test}\n" for test in flaky)
    failed_twice = [test for test in others if test not in flaky]
    for test in failed_twice:
        print(f"failed twice: {test}")
    return 1 if properties or failed_twice else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
