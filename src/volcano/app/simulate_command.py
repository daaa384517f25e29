"""`volcano simulate`: try scheduling policies on a trace under virtual time, and compare what becomes of its jobs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

import click

from volcano.api import core
from volcano.simulator.clusters import InvalidCluster, equal_nodes
from volcano.simulator.comparison import PolicyComparison, Progress, report_text
from volcano.simulator.page import page
from volcano.simulator.policies import SHIPPED, InvalidPolicy, SchedulingPolicy, read_policy, shipped_policy
from volcano.simulator.table import table
from volcano.simulator.workloads.openb import InvalidTrace, read_openb_nodes, read_openb_pods
from volcano.simulator.workloads.swf import WorkloadTrace, read_swf

BAD_INPUT: Final = 2
SHAPES: Final = ("gang", "pods=1")
MAX_CONFIGURATION_BYTES: Final = 1024 * 1024


class InputError(click.ClickException):
    exit_code = BAD_INPUT


@click.command()
@click.option("--trace", "trace_file", metavar="FILE",
              help="The workload: Standard Workload Format, or (.csv) pods of the Alibaba GPU trace.")  # fmt: skip
@click.option("--first", default=0, type=click.IntRange(min=0), help="Leave out so many jobs of the trace.")
@click.option("--count", default=None, type=click.IntRange(min=1), help="Take at most so many jobs of the trace.")
@click.option("--shape", default="gang", show_default=True, type=click.Choice(SHAPES),
              help="What a job of n processors becomes: n pods of one cpu, or one pod of n cpus.")  # fmt: skip
@click.option("--exact-estimates", is_flag=True, help="Take the run time as estimate even if a time was requested.")
@click.option("--nodes", default=None, type=int, help="How many equal nodes there are.")
@click.option("--node-cpu", default="1", show_default=True, help="Cpus of each node.")
@click.option("--node-memory", default="", help="Memory of each node.  [default: 4Gi for each cpu]")
@click.option("--node-gpu", default=0, type=click.IntRange(min=0), help="GPUs of each node (nvidia.com/gpu).")
@click.option("--nodes-file", default="", metavar="FILE", help="The node list (CSV) of the Alibaba GPU trace.")
@click.option("--policy", "policies", multiple=True, metavar="NAME", help="A shipped policy; may be repeated.")
@click.option("--conf", "configurations", multiple=True, metavar="FILE",
              help="A scheduler configuration of your own, named after its file; may be repeated.")  # fmt: skip
@click.option("--list-policies", is_flag=True, help="Print the shipped policies and end.")
@click.option("--json", "as_json", is_flag=True, help="Print report.json instead of the table.")
@click.option("--out", default=None, metavar="FOLDER", help="Write report.json and report.html into this folder.")
@click.option("--seed", default=0, show_default=True, help="Seed of what the scheduler chooses at random.")
def simulate_command(**flags: Any) -> None:
    """Run the scheduler on a trace under virtual time, once for each policy, and compare the figures.

    \b
    Exit code: 0 the simulation ended; 2 bad input.

    \b
    Examples:
      volcano simulate --list-policies
      volcano simulate --trace lublin_256.swf --count 1000 --nodes 256 --node-cpu 1 --policy fcfs --policy fcfs-easy
      volcano simulate --trace lublin_256.swf --nodes 256 --conf volcano-scheduler.conf --out report/
    """
    if flags["list_policies"]:
        for name, shipped in SHIPPED.items():
            click.echo(f"{name:<17} {shipped.summary}")
        return
    policies = _policies(flags["policies"], flags["configurations"])
    nodes = _nodes(flags)
    trace = _trace(flags)
    comparison = PolicyComparison(nodes, trace.jobs, trace.unreadable, flags["seed"])
    _tell_doubts(comparison, policies)
    _run(comparison, policies)
    _show(comparison, flags)


# -- input ------------------------------------------------------------------------------------------------------------
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
            return read_openb_nodes(Path(flags["nodes_file"]))
        return equal_nodes(flags["nodes"], flags["node_cpu"], flags["node_memory"], flags["node_gpu"])
    except (InvalidCluster, InvalidTrace) as error:
        raise InputError(str(error)) from error
    except OSError as error:
        raise InputError(f"--nodes-file {flags['nodes_file']}: {error.strerror}") from error


def _trace(flags: dict[str, Any]) -> WorkloadTrace:
    file = flags["trace_file"]
    if not file:
        raise InputError("no workload is given: use --trace FILE")
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
    click.echo(text if flags["as_json"] else table(report), nl=not flags["as_json"])
