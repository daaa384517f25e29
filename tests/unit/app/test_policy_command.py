"""`volcano policy test`."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from volcano.app.policy_command import policy_command

SCENARIO = """\
# two jobs, one after the other
cluster: {nodes: [{count: 1, cpu: 2}]}
workload:
- {name: first, runTime: 10m, pods: 2}
- {name: second, submit: 1m, runTime: 5m, pods: 2}
policy: fcfs
expect:
- wait.p50 < 10m
- job.second.starts <= 600
- utilisation.cpu > 99%
"""


def policy_test(*arguments: str) -> Result:
    return CliRunner().invoke(policy_command, ["test", *arguments])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "policies/two.yaml"
    path.parent.mkdir()
    path.write_text(SCENARIO)
    return path


def test_expectations_that_hold_end_with_code_0(file: Path) -> None:
    answer = policy_test(str(file.parent))

    assert answer.exit_code == 0, answer.output
    assert "3 expectations in 1 files: 3 hold, 0 do not" in answer.output


def test_a_failing_line_says_expected_found_and_who_contributed(file: Path, tmp_path: Path) -> None:
    file.write_text(SCENARIO.replace("<= 600", "< 5m"))

    answer = policy_test(str(file), "--junit", str(tmp_path / "results.xml"))

    assert answer.exit_code == 1
    assert "expected: job.second.starts < 300\n" in answer.output
    assert "found:    600\n" in answer.output
    assert "jobs:     second (waited 540), first (ran meanwhile, 1,080 cpu s)\n" in answer.output
    suite = ElementTree.parse(tmp_path / "results.xml").getroot()[0]
    assert (suite.attrib["tests"], suite.attrib["failures"], suite.attrib["errors"]) == ("3", "1", "0")
    assert "job.second.starts < 300" in (suite[1][0].text or "")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("wiat.p50 < 10m", "no metric is called wiat.p50; did you mean wait.p50?"),
        ("job.secnd.starts < 1", "there is no job secnd; did you mean second?"),
        ("job.second.start < 1", "no metric is called job.second.start; did you mean job.second.starts?"),
        ("wait.p50 ~ 10m", "must be `metric operator value`"),
        ("wait.p50 < soon", "must be a number, a percentage or a duration"),
    ],
)
def test_a_line_that_cannot_be_checked_is_bad_input(file: Path, wrong: str, said: str) -> None:
    file.write_text(SCENARIO.replace("wait.p50 < 10m", wrong))

    answer = policy_test(str(file))

    assert answer.exit_code == 2
    assert f"{file}: expect[0]: " in answer.output
    assert said in answer.output


def test_update_writes_what_was_found_and_keeps_the_rest(file: Path) -> None:
    for _ in range(2):
        assert policy_test(str(file), "--update").exit_code == 0

    assert file.read_text() == SCENARIO + (
        "found:\n  fcfs:\n    wait.p50: 270\n    job.second.starts: 600\n    utilisation.cpu: 1\n"
    )


def test_a_folder_without_tests_is_bad_input(tmp_path: Path) -> None:
    assert policy_test(str(tmp_path)).exit_code == 2
