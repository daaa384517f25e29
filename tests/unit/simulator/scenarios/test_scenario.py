"""Scenario files: what they become, and what is said of one that cannot be used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from volcano.simulator.comparison import PolicyComparison, report_text
from volcano.simulator.fields import InvalidScenario
from volcano.simulator.policies import shipped_policy
from volcano.simulator.scenarios.scenario import Scenario, comparison_of, read_scenario, scenario_from

EXAMPLES = Path(__file__).parents[4] / "examples"
JOB: dict[str, Any] = {"name": "one", "runTime": "10s", "pods": 2}
TEMPLATE = {"spec": {"containers": [{"name": "main", "image": "x", "resources": {"requests": {"cpu": "1"}}}]}}


def scenario(**parts: Any) -> Scenario:
    document = {"cluster": {"nodes": [{"count": 2, "cpu": 2}]}, "workload": [JOB], "policies": ["fcfs"], **parts}
    return scenario_from(document, Path())


def run(found: Scenario) -> PolicyComparison:
    comparison = comparison_of(found)
    comparison.run(found.policies)
    return comparison


def vcjob(**spec: Any) -> dict[str, Any]:
    return {"tasks": [{"name": "task", "replicas": 2, "template": TEMPLATE}], **spec}


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"workloads": []}, "workloads: is not a known field; did you mean workload?"),
        ({"workload": []}, "workload: no job is given"),
        ({"cluster": {}}, "cluster.nodes: no nodes are given"),
        ({"cluster": {"nodes": [{"count": 0}]}}, "cluster.nodes[0].count: must be a whole number from 1 to 100000"),
        ({"cluster": {"nodes": [{"cpu": "many"}]}}, "cluster.nodes[0].cpu: "),
        ({"cluster": {"nodes": [{"cpu": 1}], "events": [{"at": "1h", "fail": ["x"]}]}}, "events[0].fail[0]: there is no node x"),
        ({"workload": [{**JOB, "queue": "nowhere"}]}, "workload[0].queue: there is no queue nowhere; there are default"),
        ({"workload": [{**JOB, "priorityClassName": "x"}]}, "workload[0].priorityClassName: there is no PriorityClass x"),
        ({"workload": [{**JOB, "runTime": "soon"}]}, "workload[0].runTime: must be a duration such as 90s"),
        ({"workload": [{**JOB, "runTime": {"normal": 1}}]}, "workload[0].runTime: needs a duration, or one of"),
        ({"workload": [JOB, JOB]}, "workload[1].name: two jobs are named one"),
        ({"workload": [{"name": "x", "job": {"tasks": []}}]}, "workload[0].job: No task specified in job spec"),
        ({"workload": [{"name": "x", "job": vcjob(queue="q")}]}, "workload[0].job: unable to find job queue"),
        ({"workload": [{"trace": "none.swf"}]}, "workload[0].trace: none.swf: No such file or directory"),
        ({"workload": [{**JOB, "arrivals": {"poisson": {"every": "1s"}}}]}, "arrivals: needs `count` or `until`"),
        ({"workload": [{**JOB, "traffic": {"steps": 1}}]}, "network: is required where a job has traffic"),
        ({"policies": ["fcsf"]}, "policies[0]: no policy is called 'fcsf'; did you mean 'fcfs'?"),
        ({"queues": [{"name": "a", "wieght": 2}]}, "queues[0].wieght: is not a field of a Queue's spec"),
    ],
)  # fmt: skip
def test_bad_input_gets_the_path_and_the_reason(parts: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidScenario) as refused:
        scenario(**parts)

    assert said in str(refused.value)


def test_a_file_that_is_no_yaml_is_named(tmp_path: Path) -> None:
    file = tmp_path / "broken.yaml"
    file.write_text("a: [")

    with pytest.raises(InvalidScenario, match=r"broken\.yaml: not YAML"):
        read_scenario(file)


def test_one_seed_gives_one_report_and_another_seed_another() -> None:
    workload = [
        {**JOB, "arrivals": {"poisson": {"every": "5s"}, "count": 30}, "runTime": {"exponential": {"mean": "9s"}}}
    ]

    texts = [report_text(run(scenario(workload=workload, seed=seed)).report()) for seed in (1, 1, 2)]

    assert texts[0] == texts[1] != texts[2]


def test_a_job_template_gets_the_controllers_pod_group_and_pods() -> None:
    found = scenario(workload=[{"name": "gang", "runTime": "10s", "job": vcjob(minAvailable=1)}])

    comparison = run(found)

    outcome = comparison.runs["fcfs"].outcomes["gang"]
    assert (found.jobs[0].min_available, found.jobs[0].pods) == (1, 2)
    assert (outcome.start, outcome.end) == (0.0, 10.0)


def test_a_task_that_depends_on_another_starts_after_it() -> None:
    tasks = [
        {"name": "driver", "replicas": 1, "minAvailable": 1, "template": TEMPLATE},
        {"name": "executor", "replicas": 1, "template": TEMPLATE, "dependsOn": {"name": ["driver"]}},
    ]
    found = scenario(workload=[{"name": "spark", "runTime": "10s", "job": {"tasks": tasks, "minAvailable": 1}}])

    held = run(found).runs["fcfs"].timelines.queues["default"]

    assert max(point.held["cpu"] for point in held) == 2.0


@pytest.mark.parametrize(
    ("event", "start", "end", "evictions"),
    [
        ({"at": "5s", "fail": ["node-0"], "for": "20s"}, 0.0, 35.0, 0),
        ({"at": "5s", "drain": ["node-0"], "for": "20s"}, 0.0, 35.0, 0),
        ({"at": "5s", "maintain": ["node-0"], "for": "20s"}, 0.0, 10.0, 0),
        ({"at": "5s", "add": {"name": "more", "cpu": 4}}, 0.0, 10.0, 0),
    ],
)
def test_what_happens_to_nodes_happens_to_their_jobs(
    event: dict[str, Any], start: float, end: float, evictions: int
) -> None:
    found = scenario(cluster={"nodes": [{"count": 2, "cpu": 1}], "events": [event]}, workload=[{**JOB, "cpu": 1}])

    outcome = run(found).runs["fcfs"].outcomes["one"]

    assert (outcome.start, outcome.end, outcome.evictions) == (start, end, evictions)
    assert outcome.lost_seconds == (10.0 if end > 10.0 else 0.0)


@pytest.mark.parametrize(
    ("action", "end", "failed"),
    [("RestartJob", 35.0, ""), ("CompleteJob", 5.0, ""), ("AbortJob", None, "AbortJob after a pod was evicted")],
)
def test_a_lifecycle_policy_decides_what_follows_a_lost_pod(action: str, end: float | None, failed: str) -> None:
    job = vcjob(policies=[{"event": "PodEvicted", "action": action}])
    events = [{"at": "5s", "fail": ["node-0"], "for": "20s"}]
    found = scenario(
        cluster={"nodes": [{"count": 2, "cpu": 1}], "events": events},
        workload=[{"name": "gang", "runTime": "10s", "job": job}],
    )

    outcome = run(found).runs["fcfs"].outcomes["gang"]

    assert (outcome.end, outcome.failed) == (end, failed)


def test_random_failures_come_back_and_the_simulation_ends() -> None:
    found = scenario(
        cluster={"nodes": [{"count": 4, "cpu": 2}], "failures": {"meanTimeBetween": "2m", "repair": "30s"}},
        workload=[{**JOB, "count": 20, "runTime": "1m", "estimate": "exact"}],
    )

    outcomes = run(found).runs["fcfs"].outcomes.values()

    assert all(outcome.end is not None for outcome in outcomes)
    assert sum(outcome.attempts for outcome in outcomes) > len(outcomes)


def test_the_simulation_ends_at_its_time() -> None:
    found = scenario(until="15s", workload=[{**JOB, "count": 3, "cpu": 2}])

    of = run(found).report()["policies"]["fcfs"]

    assert (of["finished"], of["unfinished"]["jobs"]) == (1, ["one-1", "one-2"])
    assert of["starvation"] == {"longest_wait": 15.0, "job": "one-2", "started": False}


def test_the_examples_can_be_read() -> None:
    for path in sorted(
        [*EXAMPLES.glob("simulator/*.yaml"), *EXAMPLES.glob("policies/*.yaml"), *EXAMPLES.glob("experiments/*.yaml")]
    ):
        assert read_scenario(path).jobs, path
    assert shipped_policy("fcfs").name == "fcfs"
