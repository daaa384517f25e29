"""`volcano simulate`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from volcano.app.simulate_command import simulate_command

TRACE = """; Version: 2.2
1 0 -1 100 3 -1 -1 -1 -1 -1 1 -1 -1 -1 0 -1 -1 -1
2 10 -1 50 2 -1 -1 -1 -1 -1 1 -1 -1 -1 0 -1 -1 -1
3 20 -1 30 1 -1 -1 -1 -1 -1 1 -1 -1 -1 0 -1 -1 -1
what is this
4 30 -1 10 9 -1 -1 -1 -1 -1 1 -1 -1 -1 0 -1 -1 -1
"""

OPPOSED = """
cluster: {nodes: [{count: 2, cpu: 1}]}
priorityClasses: [{name: low, value: 1}, {name: high, value: 100}]
workload:
- {name: first, runTime: 100s, pods: 2, priorityClassName: low}
- {name: urgent, submit: 40s, runTime: 10s, pods: 2, priorityClassName: high}
policies:
- name: opposed
  configuration: |
    actions: "enqueue, allocate, preempt"
    tiers:
    - plugins:
      - {name: easy, arguments: {easy.order: submit, easy.strict: true}}
      - {name: priority, enableJobOrder: false}
      - {name: gang, enableJobOrder: false, enablePreemptable: false}
      - {name: conformance}
    - plugins: [{name: predicates}, {name: nodeorder}]
"""


@pytest.fixture
def trace(tmp_path: Path) -> str:
    path = tmp_path / "small.swf"
    path.write_text(TRACE)
    return str(path)


def simulate(*arguments: str) -> Result:
    return CliRunner().invoke(simulate_command, arguments)


def test_policies_are_compared_in_a_table(trace: str) -> None:
    answer = simulate("--trace", trace, "--nodes", "4", "--policy", "fcfs", "--policy", "fcfs-easy")

    assert answer.exit_code == 0, answer.output
    rows = {line.split("  ")[0]: line for line in answer.stdout.splitlines()}
    assert rows["wait, mean"].split() == ["wait,", "mean", "56.7", "s", "30.0", "s", "(-47.1%)", "*"]
    assert "percentages are differences to fcfs" in answer.stdout
    assert "fcfs-easy: 4 jobs on 4 nodes" in answer.stderr


def test_what_cannot_be_used_is_named_and_the_rest_goes_on(trace: str) -> None:
    answer = simulate("--trace", trace, "--nodes", "4", "--policy", "fcfs", "--json")

    report = json.loads(answer.stdout)
    of = report["policies"]["fcfs"]
    why = "needs 9 pods of cpu 1; the empty cluster has room for 4"
    assert (of["jobs"], of["finished"], of["never_runnable"]) == (4, 3, {"count": 1, "jobs": {"job-4": why}})
    assert report["unreadable_lines"] == {"count": 1, "named": ["line 5: 3 fields instead of 18"]}
    assert f"job-4 {why}" in answer.stderr
    assert of["bounded_slowdown"]["mean"] > 1.0
    assert of["utilisation"]["cpu"] == pytest.approx((300 + 100 + 30) / (4 * of["makespan"]), abs=1e-6)


def test_the_same_input_gives_the_same_bytes(trace: str, tmp_path: Path) -> None:
    written = []
    for folder in ("one", "two"):
        out = tmp_path / folder
        answer = simulate("--trace", trace, "--nodes", "4", "--policy", "volcano-default", "--out", str(out))
        assert answer.exit_code == 0, answer.output
        written.append((out / "report.json").read_bytes())

    assert written[0] == written[1]


def test_a_changed_policy_changes_the_report(trace: str, tmp_path: Path) -> None:
    conf, written = tmp_path / "mine.conf", []
    for order in ("submit", "shortest", "submit"):
        arguments = f"{{easy.order: {order}, easy.strict: true, easy.scope: cluster}}"
        conf.write_text(
            "actions: 'enqueue, allocate'\n"
            f"tiers: [{{plugins: [{{name: easy, arguments: {arguments}}}, {{name: gang, enableJobOrder: false}}, {{name: predicates}}]}}]\n"
        )
        answer = simulate("--trace", trace, "--nodes", "4", "--conf", str(conf), "--json")
        assert answer.exit_code == 0, answer.output
        written.append(answer.stdout)

    assert written[0] != written[1]
    assert written[0] == written[2]


def test_an_unknown_plugin_is_named_with_its_place(trace: str, tmp_path: Path) -> None:
    conf = tmp_path / "mine.conf"
    conf.write_text("actions: 'allocate'\ntiers: [{plugins: [{name: gangg}]}]\n")

    answer = simulate("--trace", trace, "--nodes", "4", "--conf", str(conf))

    assert answer.exit_code == 2
    assert "mine: tiers[0].plugins: no plugin is called 'gangg'; did you mean 'gang'?" in answer.stderr


def test_a_policy_that_cycles_is_named(tmp_path: Path) -> None:
    scenario = tmp_path / "opposed.yaml"
    scenario.write_text(OPPOSED)

    answer = simulate(str(scenario), "--json")

    cycles = json.loads(answer.stdout)["policies"]["opposed"]["policy_cycles"]
    assert cycles["instants"] >= 1
    assert list(cycles["jobs"]) == ["first"]
    assert "opposed: the policy cycles: first evicted" in answer.stderr


def test_a_slice_and_the_shape_of_jobs(trace: str) -> None:
    asked = ("--trace", trace, "--first", "1", "--count", "2", "--shape", "pods=1", "--policy", "fcfs", "--json")

    of = json.loads(simulate(*asked, "--nodes", "2", "--node-cpu", "1").stdout)["policies"]["fcfs"]

    assert (of["jobs"], of["finished"], list(of["never_runnable"]["jobs"])) == (2, 1, ["job-2"])


def test_a_configuration_of_ones_own_is_named_after_its_file(trace: str, tmp_path: Path) -> None:
    conf = tmp_path / "mine.conf"
    conf.write_text("actions: 'enqueue, allocate'\ntiers: [{plugins: [{name: gang}, {name: predicates}]}]\n")

    answer = simulate("--trace", trace, "--nodes", "4", "--conf", str(conf), "--json")

    assert list(json.loads(answer.stdout)["policies"]) == ["mine"]


def test_shipped_policies_are_listed() -> None:
    assert [line.split()[0] for line in simulate("--list-policies").stdout.splitlines()][:2] == ["fcfs", "fcfs-easy"]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--nodes", "4", "--policy", "fcfs"], "no workload is given"),
        (["--trace", "TRACE", "--policy", "fcfs"], "no cluster is given"),
        (["--trace", "TRACE", "--nodes", "4"], "no policy is given"),
        (["--trace", "absent.swf", "--nodes", "4", "--policy", "fcfs"], "absent.swf: No such file"),
        (["--trace", "TRACE", "--nodes", "4", "--policy", "fcsf"], "did you mean 'fcfs'?"),
        (["--trace", "TRACE", "--nodes", "4", "--policy", "fcfs", "--policy", "fcfs"], "two policies are named fcfs"),
        (["--trace", "TRACE", "--nodes", "0", "--policy", "fcfs"], "at least 1"),
        (["--trace", "TRACE", "--nodes", "4", "--conf", "absent.conf"], "absent.conf: No such file"),
        (["--trace", "TRACE", "--nodes", "4", "--nodes-file", "n.csv", "--policy", "fcfs"], "use either --nodes"),
        (["--trace", "TRACE", "--nodes-file", "absent.csv", "--policy", "fcfs"], "absent.csv: No such file"),
        (["--trace", "TRACE", "--nodes-file", "TRACE", "--policy", "fcfs"], "lacks the columns sn, cpu_milli"),
        (["--trace", "TRACE", "--nodes", "4", "--first", "9", "--policy", "fcfs"], "no job can be read"),
        (["--trace", "TRACE", "--nodes", "4", "--shape", "round", "--policy", "fcfs"], "--shape"),
    ],
)
def test_bad_input_is_an_error_of_code_2(trace: str, arguments: list[str], reason: str) -> None:
    answer = simulate(*(trace if each == "TRACE" else each for each in arguments))

    assert answer.exit_code == 2
    assert reason in answer.stderr
