"""Run the scenarios of examples/experiments and write docs/experiments.md with their figures and plots (SVG).

    python tools/experiments.py [--long] [--only NAME …]
    python tools/experiments.py --pods FILE     the openb experiment with another list of pods; prints its figures only

What is simulated is the same on every machine. Experiments that take long run with --long or when they are named; for
the others the page has the figures that were recorded when they ran last (docs/experiments/recorded.json).
"""

# ruff: noqa: E501 (lines of the page and of pictures)
from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from experiment_plots import PLOTS, bars, saturation, steps

from volcano.api.bounded_yaml import load_yaml
from volcano.simulator.clusters import capacity
from volcano.simulator.comparison import PolicyComparison
from volcano.simulator.fairness import share_samples
from volcano.simulator.jobs import JobOutcome
from volcano.simulator.policies import SchedulingPolicy, read_policy
from volcano.simulator.saturation import sampled_jobs, saturate
from volcano.simulator.scenarios.scenario import Scenario, comparison_of, read_scenario, scenario_from
from volcano.simulator.workloads.openb import GPU, read_openb_nodes, read_openb_pods

ROOT = Path(__file__).resolve().parents[1]
SCENARIOS = ROOT / "examples/experiments"
PAGE, RECORD = ROOT / "docs/experiments.md", ROOT / "docs/experiments/recorded.json"


MAX_POINTS = 2_000  # of a line that is drawn


def run(name: str) -> tuple[Scenario, PolicyComparison]:
    scenario = read_scenario(SCENARIOS / f"{name}.yaml")
    comparison = comparison_of(scenario)
    comparison.run(scenario.policies)
    return scenario, comparison


# -- the experiments: each answers the rows of its table, and draws its plot -------------------------------------------
def gang_deadlock() -> list[tuple[str, str, str]]:
    scenario, _ = run("gang-deadlock")
    finished: dict[str, list[float]] = {policy.name: [] for policy in scenario.policies}
    for count in (1, 2, 5):
        comparison = comparison_of(scenario)
        comparison.jobs = scenario.jobs[:count]
        comparison.run(scenario.policies)
        for name, of in comparison.report()["policies"].items():
            finished[name].append(of["finished"])
    bars("gang-deadlock", "jobs that finish", ["1 job", "2 jobs", "5 jobs"], finished)
    without, whole = finished["without gang"], finished["with gang"]
    return [
        ("5 jobs without gang", "2 of 5 finish", f"{without[2]:.0f} of 5 finish (of 1: {without[0]:.0f}, of 2: {without[1]:.0f})"),
        ("5 jobs with gang", "all finish", f"{whole[2]:.0f} of 5 finish"),
    ]  # fmt: skip


def task_topology() -> list[tuple[str, str, str]]:
    _, comparison = run("task-topology")
    times = {name: [outcome.ran or 0.0 for outcome in of.outcomes.values()] for name, of in comparison.runs.items()}
    bars("task-topology", "run time of each job, s", ["job 1", "job 2", "job 3"], times)
    base, best = _mean(times["nodeorder"]), _mean(times["task-topology"])
    spread = max(times["task-topology"]) - min(times["task-topology"])
    cost = {name: max(times[name]) / 1000.0 - 0.15 for name in times}
    shown = ", ".join(f"{name} {seconds * 1000:.0f} ms" for name, seconds in cost.items())
    return [
        ("task-topology with binpack against nodeorder", "about 30 % faster, and stable",
         f"{(base - best) / base:.1%} faster ({base:.0f} s → {best:.0f} s); all within {spread:.0f} s"),
        ("largest communication cost between any two nodes, in a step", "is minimal", shown),
    ]  # fmt: skip


def elastic() -> list[tuple[str, str, str]]:
    _, comparison = run("elastic")
    held = {}
    for name, of in comparison.runs.items():
        held[name] = [(point.seconds, point.held.get("cpu", 0.0)) for point in of.timelines.queues["training"]]
    steps("elastic", "pods that run", held)
    with_preempt, without = (comparison.runs[name].outcomes for name in ("preempting", "without preempt"))
    return [
        ("inference job of 5 beside an elastic one of 5 to 10", "starts at once; the elastic job shrinks to 5",
         f"waits {_wait(with_preempt['inference']):.0f} s; {with_preempt['elastic'].evictions} pods of the elastic job are evicted and return"),
        ("the same without preempt", "–", f"waits {_wait(without['inference']):,.0f} s"),
    ]  # fmt: skip


def fair_share() -> list[tuple[str, str, str]]:
    scenario, comparison = run("fair-share")
    of = comparison.runs["reclaiming"]
    samples = share_samples(of.timelines, scenario.queues, 0.0, 2400.0)
    lines = {name: [(each.seconds, each.held) for each in samples[name]] for name in ("two", "one")}
    steps("fair-share", "share of the cpus", lines)
    alone = next(each for each in samples["one"] if each.seconds > 300.0)
    both = {name: next(each for each in samples[name] if each.seconds > 900.0).held for name in ("two", "one")}
    return [
        ("the queue of weight 1 while it is alone", "borrows all", f"holds {alone.held:.0%}"),
        ("weights 2:1 when both want more", "2/3 and 1/3", f"{both['two']:.1%} and {both['one']:.1%}"),
    ]


def big_job() -> list[tuple[str, str, str]]:
    _, comparison = run("big-job")
    waits = {name: [_wait(of.outcomes["big"]) / 60.0] for name, of in comparison.runs.items()}
    bars("big-job", "wait of the big job, min", ["big job"], waits)
    shown = {name: f"{values[0]:.1f} min" for name, values in waits.items()}
    return [
        (
            "a job for the whole cluster among small ones, volcano-default",
            "starves",
            f"waits {shown['volcano-default']}",
        ),
        ("the same with a reservation (fcfs-easy)", "no longer starves", f"waits {shown['fcfs-easy']}"),
    ]


def spark() -> list[tuple[str, str, str]]:
    scenario = read_scenario(SCENARIOS / "spark.yaml")
    took = {"minResources": [_makespan(scenario)]}
    scenario.jobs = [replace(job, min_resources=None) for job in scenario.jobs]
    without = comparison_of(scenario)
    without.run(scenario.policies)
    finished = sum(outcome.end is not None for outcome in without.runs["volcano-default"].outcomes.values())
    text = (SCENARIOS / "spark-driver-nodes.yaml").read_text(encoding="utf-8")
    one = text.replace("name: drivers, count: 2", "name: drivers, count: 1").replace(
        "executors, count: 2", "executors, count: 3"
    )
    for name, content in (("2 nodes for drivers", text), ("1 node for drivers", one)):
        took[name] = [_makespan(scenario_from(load_yaml(content), SCENARIOS))]
    bars("spark", "until all 100 applications have ended, s (without any of these: never)", ["100 applications"], took)
    best = took["minResources"][0]
    faster = {
        name: f"{(of[0] - best) / of[0]:.1%} faster ({of[0]:,.0f} s → {best:,.0f} s)" for name, of in took.items()
    }
    return [
        ("neither minResources nor nodes kept for drivers", "drivers take the cpus that their executors need", f"{finished} of 100 finish"),
        ("minResources against 2 of 4 nodes kept for drivers", "39.9 % faster", faster["2 nodes for drivers"]),
        ("minResources against 1 of 4 nodes kept for drivers", "–", faster["1 node for drivers"]),
    ]  # fmt: skip


def _makespan(scenario: Scenario) -> float:
    comparison = comparison_of(scenario)
    comparison.run(scenario.policies)
    outcomes = comparison.runs["volcano-default"].outcomes.values()
    assert all(outcome.end is not None for outcome in outcomes)
    return max(outcome.end or 0.0 for outcome in outcomes)


def pods_per_day() -> list[tuple[str, str, str]]:
    """A simulated week, and the benchmark of the rate on a real `volcano up`."""
    began = time.process_time()
    scenario, comparison = run("week")
    of, took = comparison.runs["volcano-default"], time.process_time() - began
    queue = of.timelines.queues["default"]
    points = queue[:: max(len(queue) // MAX_POINTS, 1)]
    lines = {
        "held": [(each.seconds, each.held.get("cpu", 0.0)) for each in points],
        "wanted": [(each.seconds, each.wanted.get("cpu", 0.0)) for each in points],
    }
    steps("week", "cpus of pods that run, and of those that run or wait", lines)
    figures = comparison.report()["policies"]["volcano-default"]
    pods = sum(outcome.job.pods for outcome in of.outcomes.values() if outcome.end is not None)
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        subprocess.run([sys.executable, ROOT / "benchmarks/pods_per_day.py", "--json", file.name], check=True)
        rate = json.loads(Path(file.name).read_text(encoding="utf-8"))
    return [
        ("a simulated week", "300,000 pods a day",
         f"{pods:,} pods in {figures['finished']:,} jobs on {len(scenario.cluster.nodes)} nodes of 32 cpus; waits: mean {figures['wait']['mean']:.1f} s, "
         f"99 % {figures['wait']['p99']:.0f} s; utilisation {figures['utilisation']['cpu']:.0%}; {took / 60:.0f} min of processor time"),
        ("`volcano up --simulated-nodes 1000` at ten times that rate, ten real minutes", "–",
         f"{rate['held']:.1f} pods/s of {rate['asked']:.1f} held; from submit to all pods of a job Running: median {rate['starts'][0]:.2f} s, 99 % {rate['starts'][2]:.2f} s; "
         f"{rate['cores']:.0%} of one core"),
    ]  # fmt: skip


OPENB_SEEDS = range(10)
OPENB_DEFAULT_PODS = "openb_pod_list_default.csv"
OPENB_PUBLISHED = {
    "random": "random 86.3 % (87.5 %)",
    "binpack": "best fit 92.9 % (93.1 %)",
    "fragmentation": "FGD 95.2 % (95.4 %)",
}
OPENB_SHARES = tuple(share / 100 for share in range(80, 131))  # of the cluster, that have been asked for


def openb_policies() -> list[SchedulingPolicy]:
    """Cards are shared under each of them; they differ in the plugin that scores nodes."""
    shared = (SCENARIOS / "openb.conf").read_text(encoding="utf-8")
    scorers = {
        "random": "",
        "binpack": "  - name: binpack\n    arguments: {binpack.accelerators: 8}\n",
        "fragmentation": "  - name: fragmentation\n",
    }
    return [read_policy(name, shared + scorer) for name, scorer in scorers.items()]


def openb_curves(pods: Path, seeds: Sequence[int]) -> dict[str, list[tuple[float, float]]]:
    """By policy what is given out when so much has arrived, both as shares of the cluster: the mean of the seeds."""
    folder = Path(os.environ.get("TRACES", ROOT.parent / "shared/traces"))
    nodes = read_openb_nodes(folder / "openb_node_list_gpu_node.csv")
    trace = read_openb_pods(pods if pods.exists() or pods.is_absolute() else folder / pods)
    if trace.unreadable.count:
        print(f"  {pods}: {trace.unreadable.count} lines cannot be read: {trace.unreadable.named[0]}", flush=True)
    whole = capacity(nodes)[GPU]
    curves = {}
    for policy in openb_policies():
        of_seeds = []
        for seed in seeds:
            of_seeds.append(saturate(nodes, sampled_jobs(trace.jobs, GPU, 1.3 * whole, seed), policy, GPU, seed))
            reached = ", ".join(f"{of_seeds[-1].allocated_at(share):.2%}" for share in (1.0, 1.3))
            print(f"  {policy.name}, seed {seed}: {reached}", flush=True)
        curves[policy.name] = [
            (share, _mean([curve.allocated_at(share) for curve in of_seeds])) for share in OPENB_SHARES
        ]
    return curves


def openb() -> list[tuple[str, str, str]]:
    """GPUs given out as pods drawn from the openb trace arrive and never end; the trace is in $TRACES."""
    curves = openb_curves(Path(OPENB_DEFAULT_PODS), OPENB_SEEDS)
    saturation("openb", {name: [(asked, 100 * given) for asked, given in of] for name, of in curves.items()})
    return [
        (name, OPENB_PUBLISHED[name], f"{_reached(of)}, mean of seeds 0 to {OPENB_SEEDS[-1]}")
        for name, of in curves.items()
    ]


def _reached(curve: Sequence[tuple[float, float]]) -> str:
    at = dict(curve)
    return f"{at[1.0]:.1%} ({at[1.3]:.1%})"


EXPERIMENTS = {
    "spark": ("minResources for Spark", spark),
    "gang-deadlock": ("Gang against deadlock", gang_deadlock),
    "task-topology": ("Task topology and binpack on a modelled network", task_topology),
    "elastic": ("An elastic job beside inference", elastic),
    "fair-share": ("Queues that borrow and reclaim", fair_share),
    "big-job": ("Big jobs no longer starve", big_job),
}


LONG = {
    "openb": (
        "GPUs of the openb trace that are given out when 100 % (130 %) of them have been asked for",
        openb,
    ),
    "week": ("300,000 pods a day", pods_per_day),
}


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _wait(outcome: JobOutcome) -> float:
    assert outcome.wait is not None, f"{outcome.job.name} never started"
    return outcome.wait


HEAD = """\
# Experiments

The experiments with which Volcano was presented, run in the [simulator](simulator.md) by `make experiments` (`LONG=1` for those that take long, `ONLY="spark week"` for some). Each is a scenario in [examples/experiments](../examples/experiments). The published figures were measured on
clusters whose sizes were not all published, so ours are beside them, not equal to them.

"""
TAIL = """\
## What is not reproduced

- In the first experiment none of five jobs finishes without gang, where two did in the published one: jobs take turns pod by pod here, so all five get an equal part, which is too little for each.
- How the cluster of the published experiment with Spark was divided is not known, so both divisions are shown. An application's executors share its work here: with half of them it takes twice as long.
- The simulated week is [examples/experiments/week.yaml](../examples/experiments/week.yaml); `make experiments ONLY=week` runs it to its end, and then the rate.
- `make experiments ONLY=openb` needs the trace: `TRACES` names its folder. `make experiments PODS=FILE` prints the figures for another list of pods of the same form. Pods are drawn with replacement by seed until they ask for 130 % of the GPUs, and arrive in this order, 1,000 at a time; none ends.
  The published figures are those of "Beware of Fragmentation" (USENIX ATC 2023) on the same trace; its draws are not ours. `random` takes any node on which the pod fits.
- On the modelled network task-topology is not better than binpack alone, because each job fits on one node; the bandwidths and the computation of a step are chosen, not measured.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--long", action="store_true", help="also those that take long: " + ", ".join(LONG))
    parser.add_argument(
        "--only",
        nargs="*",
        choices=[*EXPERIMENTS, *LONG],
        help="run these, and no others; none: only write the page anew",
    )
    parser.add_argument("--pods", type=Path, help="a list of pods as the openb trace has them, in $TRACES or anywhere")
    parser.add_argument("--seeds", type=int, default=len(OPENB_SEEDS), help="how often --pods draws from it")
    asked = parser.parse_args()
    if asked.pods is not None:
        for name, curve in openb_curves(asked.pods, range(asked.seeds)).items():
            print(f"{name}: {_reached(curve)}, mean of {asked.seeds} seeds")
        return
    PLOTS.mkdir(exist_ok=True)
    every = {**EXPERIMENTS, **LONG}
    recorded = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    for name in asked.only if asked.only is not None else every if asked.long else EXPERIMENTS:
        title, experiment = every[name]
        recorded[name] = experiment()
        print(f"{title}:\n" + "\n".join(f"  {what}: {found}" for what, _, found in recorded[name]), flush=True)
        RECORD.write_text(json.dumps(recorded, indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")
    text = HEAD
    for name, (title, _) in every.items():
        if name in recorded:
            rows = "\n".join(f"| {what} | {published} | {found} |" for what, published, found in recorded[name])
            text += f"## {title}\n\n| | published | here |\n|---|---|---|\n{rows}\n\n"
            if (PLOTS / f"{name}.svg").exists():
                text += f"![{title}](experiments/{name}.svg)\n\n"
    PAGE.write_text(text + TAIL, encoding="utf-8")


if __name__ == "__main__":
    main()
