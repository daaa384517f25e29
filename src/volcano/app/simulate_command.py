"""`volcano simulate`: try scheduling policies on a trace under virtual time, and compare what becomes of its jobs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

import click

from volcano.api import core
from volcano.app.live_comparison import live_comparison
from volcano.simulator.clusters import InvalidCluster, equal_nodes, queues_named
from volcano.simulator.comparison import PolicyComparison, Progress, report_text
from volcano.simulator.fields import InvalidScenario, seconds_at
from volcano.simulator.page import page
from volcano.simulator.pictures import NoBrowser, write_pictures
from volcano.simulator.policies import SHIPPED, InvalidPolicy, SchedulingPolicy, read_policy, shipped_policy
from volcano.simulator.scenarios.cluster import nodes_from_file
from volcano.simulator.scenarios.scenario import comparison_of, read_scenario
from volcano.simulator.table import table
from volcano.simulator.workloads.history import read_history
from volcano.simulator.workloads.openb import InvalidTrace, read_openb_pods
from volcano.simulator.workloads.swf import WorkloadTrace, read_swf

BAD_INPUT: Final = 2
SHAPES: Final = ("gang", "pods=1")
MAX_NAMED_REPETITIONS: Final = 10
MAX_CONFIGURATION_BYTES: Final = 1024 * 1024


class InputError(click.ClickException):
    exit_code = BAD_INPUT


@click.command()
@click.argument("scenario", required=False, metavar="[SCENARIO]")
@click.option("--from-cluster", is_flag=True,
              help="Nodes, queues, running and waiting jobs of the live system, and what becomes of them.")  # fmt: skip
@click.option("--kubeconfig", default="", metavar="FILE", help="With --from-cluster: where the system answers.")
@click.option("--assume-run-time", default="1h", show_default=True,
              help="With --from-cluster: run time of jobs that state no estimate.")  # fmt: skip
@click.option("--trace", "trace_file", metavar="FILE",
              help="Standard Workload Format, (.csv) pods of the Alibaba GPU trace, (.jsonl) a history.")  # fmt: skip
@click.option("--first", default=0, type=click.IntRange(min=0), help="Leave out so many jobs of the trace.")
@click.option("--count", default=None, type=click.IntRange(min=1), help="Take at most so many jobs of the trace.")
@click.option("--shape", default="gang", show_default=True, type=click.Choice(SHAPES),
              help="What a job of n processors becomes: n pods of one cpu, or one pod of n cpus.")  # fmt: skip
@click.option("--exact-estimates", is_flag=True, help="Take the run time as estimate even if a time was requested.")
@click.option("--nodes", default=None, type=int, help="How many equal nodes there are.")
@click.option("--node-cpu", default="1", show_default=True, help="Cpus of each node.")
@click.option("--node-memory", default="", help="Memory of each node.  [default: 4Gi for each cpu]")
@click.option("--node-gpu", default=0, type=click.IntRange(min=0), help="GPUs of each node (nvidia.com/gpu).")
@click.option(
    "--nodes-file",
    default="",
    metavar="FILE",
    help="A node list: Node manifests (.yaml, .json), or the CSV of the Alibaba GPU trace.",
)
@click.option("--policy", "policies", multiple=True, metavar="NAME", help="A shipped policy; may be repeated.")
@click.option("--conf", "configurations", multiple=True, metavar="FILE",
              help="A scheduler configuration of your own, named after its file; may be repeated.")  # fmt: skip
@click.option("--list-policies", is_flag=True, help="Print the shipped policies and end.")
@click.option("--json", "as_json", is_flag=True, help="Print report.json instead of the table.")
@click.option("--out", default=None, metavar="FOLDER", help="Write report.json and report.html into this folder.")
@click.option("--png", is_flag=True, help="With --out: a picture of each plot, drawn by an installed Chromium.")
@click.option(
    "--seed", default=None, type=int, help="Seed of what is chosen at random.  [default: 0, or the scenario's]"
)
def simulate_command(**flags: Any) -> None:
    """Run the scheduler on a workload under virtual time, once for each policy, and compare the figures.

    The workload is a trace, a scenario file, or what a live system is doing now.

    \b
    Exit code: 0 the simulation ended; 2 bad input.

    \b
    Examples:
      volcano simulate --list-policies
      volcano simulate --trace lublin_256.swf --count 1000 --nodes 256 --node-cpu 1 --policy fcfs --policy fcfs-easy
      volcano simulate --trace lublin_256.swf --nodes 256 --conf volcano-scheduler.conf --out report/
      volcano simulate scenario.yaml --out report/
      volcano simulate --from-cluster --conf new.conf
    """
    if flags["png"] and not flags["out"]:
        raise InputError("--png needs --out FOLDER")
    if flags["list_policies"]:
        for name, shipped in SHIPPED.items():
            click.echo(f"{name:<17} {shipped.summary}")
        return
    comparison, policies = _input(flags)
    _tell_doubts(comparison, policies)
    _run(comparison, policies)
    _show(comparison, flags)


# -- input ------------------------------------------------------------------------------------------------------------
def _input(flags: dict[str, Any]) -> tuple[PolicyComparison, list[SchedulingPolicy]]:
    sources = [flags["scenario"], flags["trace_file"], flags["from_cluster"]]
    if sum(map(bool, sources)) > 1:
        raise InputError("give one of SCENARIO, --trace and --from-cluster")
    if flags["scenario"]:
        return _scenario(flags)
    policies = _policies(flags["policies"], flags["configurations"])
    if flags["from_cluster"]:
        try:
            seconds = seconds_at(flags["assume_run_time"], "--assume-run-time")
        except InvalidScenario as error:
            raise InputError(str(error)) from error
        return live_comparison(flags["kubeconfig"], seconds, flags["seed"] or 0), policies
    nodes = _nodes(flags)
    trace = _trace(flags)
    queues = queues_named(job.queue for job in trace.jobs)
    return PolicyComparison(nodes, trace.jobs, trace.unreadable, flags["seed"] or 0, queues), policies


def _scenario(flags: dict[str, Any]) -> tuple[PolicyComparison, list[SchedulingPolicy]]:
    try:
        scenario = read_scenario(Path(flags["scenario"]))
    except InvalidScenario as error:
        raise InputError(str(error)) from error
    policies = list(scenario.policies)
    if flags["policies"] or flags["configurations"] or not policies:
        policies = _policies(flags["policies"], flags["configurations"])
    if flags["seed"] is not None:
        scenario.seed = flags["seed"]
    return comparison_of(scenario), policies


def _policies(names: tuple[str, ...], files: tuple[str, ...]) -> list[SchedulingPolicy]:
    if not names and not files:
        raise InputError("no policy is given: use --policy NAME (--list-policies prints them) or --conf FILE")
    try:
        found = [shipped_policy(name) for name in names]
        found += [read_policy(Path(file).stem, _configuration_text(file)) for file in files]
    except InvalidPolicy as error:
        raise InputError(str(error)) from error
    given = [policy.name for policy in found]
    for name in given:
        if given.count(name) > 1:
            raise InputError(f"two policies are named {name}")
    return found


def _configuration_text(file: str) -> str:
    try:
        with Path(file).open("rb") as opened:
            data = opened.read(MAX_CONFIGURATION_BYTES + 1)
    except OSError as error:
        raise InputError(f"--conf {file}: {error.strerror}") from error
    if len(data) > MAX_CONFIGURATION_BYTES:
        raise InputError(f"--conf {file}: larger than {MAX_CONFIGURATION_BYTES} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"--conf {file}: not UTF-8 text") from error


def _nodes(flags: dict[str, Any]) -> list[core.Node]:
    if (flags["nodes"] is None) == (not flags["nodes_file"]):
        raise InputError("no cluster is given: use either --nodes N with --node-cpu C, or --nodes-file FILE")
    try:
        if flags["nodes_file"]:
            return nodes_from_file(Path(flags["nodes_file"]), "--nodes-file")
        return equal_nodes(flags["nodes"], flags["node_cpu"], flags["node_memory"], flags["node_gpu"])
    except (InvalidCluster, InvalidScenario) as error:
        raise InputError(str(error)) from error


def _trace(flags: dict[str, Any]) -> WorkloadTrace:
    file = flags["trace_file"]
    if not file:
        raise InputError("no workload is given: use --trace FILE, a scenario file or --from-cluster")
    try:
        trace = _read(Path(file), flags)
    except InvalidTrace as error:
        raise InputError(str(error)) from error
    except OSError as error:
        raise InputError(f"--trace {file}: {error.strerror}") from error
    if not trace.jobs:
        first = f"; {trace.unreadable.named[0]}" if trace.unreadable.named else ""
        raise InputError(f"--trace {file}: no job can be read in the slice asked for{first}")
    return trace


def _read(path: Path, flags: dict[str, Any]) -> WorkloadTrace:
    first, count = flags["first"], flags["count"]
    if path.suffix == ".csv":
        return read_openb_pods(path, first=first, count=count)
    if path.suffix == ".jsonl":
        return read_history(path, first=first, count=count)
    single_pod, exact = flags["shape"] == "pods=1", flags["exact_estimates"]
    return read_swf(path, first=first, count=count, single_pod=single_pod, exact=exact)


# -- run and output ---------------------------------------------------------------------------------------------------
def _tell_doubts(comparison: PolicyComparison, policies: list[SchedulingPolicy]) -> None:
    for policy in policies:
        for doubt in policy.doubts:
            click.echo(f"{policy.name}: {doubt}", err=True)
    if comparison.unreadable.count:
        click.echo(f"{comparison.unreadable.count} lines of the trace are left out:", err=True)
        for line in comparison.unreadable.named:
            click.echo(f"  {line}", err=True)


def _run(comparison: PolicyComparison, policies: list[SchedulingPolicy]) -> None:
    for policy in policies:
        if not sys.stderr.isatty():
            click.echo(f"{policy.name}: {len(comparison.jobs)} jobs on {len(comparison.nodes)} nodes …", err=True)
            comparison.run([policy])
            continue
        with click.progressbar(length=len(comparison.jobs), label=f"{policy.name:<17}", file=sys.stderr) as bar:
            comparison.run([policy], _moving(bar))
    if comparison.never_runnable:
        click.echo(f"{len(comparison.never_runnable)} jobs can never run on this cluster:", err=True)
        for name, why in list(comparison.never_runnable.items())[:10]:
            click.echo(f"  {name} {why}", err=True)

    for policy_name, run in comparison.runs.items():
        for name, repetition in list(run.repetitions.jobs.items())[:MAX_NAMED_REPETITIONS]:
            click.echo(f"{policy_name}: the policy cycles: {name} {repetition.why}", err=True)


def _moving(bar: Any) -> Progress:
    return lambda _policy, finished: bar.update(finished - bar.pos)


def _show(comparison: PolicyComparison, flags: dict[str, Any]) -> None:
    report = comparison.report()
    text = report_text(report)
    if flags["out"]:
        folder = Path(flags["out"])
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "report.json").write_text(text, encoding="utf-8")
            (folder / "report.html").write_text(page(comparison), encoding="utf-8")
        except OSError as error:
            raise InputError(f"--out {folder}: {error.strerror}") from error
        click.echo(f"written: {folder / 'report.json'}, {folder / 'report.html'}", err=True)
        if flags["png"]:
            _draw(folder / "report.html", list(comparison.runs))
    click.echo(text if flags["as_json"] else table(report), nl=not flags["as_json"])


def _draw(written: Path, policies: list[str]) -> None:
    try:
        pictures = write_pictures(written, policies)
    except NoBrowser as error:
        raise InputError(str(error)) from error
    click.echo(f"written: {len(pictures)} pictures beside it", err=True)
