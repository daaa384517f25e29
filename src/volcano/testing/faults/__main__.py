"""`python -m volcano.testing.faults`: run seeds, show what one does, or find the fewest faults with which it fails."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

import click

from volcano.machinery.clock import Stopwatch
from volcano.testing.faults.campaign import SeedOutcome, SeedRecord, quiet, run_campaign, sources_digest
from volcano.testing.faults.minimize import minimized
from volcano.testing.faults.run import run_seed

FIXED_HASHES = {"PYTHONHASHSEED": "0"}
"""Without it the order of sets differs from process to process, and a seed could not be replayed to the same bytes."""

REPORT_SECONDS = 15.0


@click.command()
@click.option("--seeds", default="0:100", show_default=True, help="FIRST:END, or one number.")
@click.option("--seed", type=int, default=None, help="Only this one, in this process.")
@click.option("--trace", is_flag=True, help="With --seed: print everything that happened.")
@click.option("--without-faults", is_flag=True, help="With --seed: leave out all faults.")
@click.option("--minimize", is_flag=True, help="Of a seed that fails, remove faults while it still does.")
@click.option("--keep-going", is_flag=True, help="Run all seeds, also after one has failed.")
@click.option("--minutes", type=float, default=0.0, help="Begin no further seed after this time; 0 is without end.")
@click.option("--processes", type=int, default=0, help="At the same time; 0 is one for each CPU of this machine.")
@click.option(
    "--record", type=click.Path(dir_okay=False, path_type=Path), default=None,
    help="Keep outcomes in this file, and leave out seeds that have passed on the same sources.",
)  # fmt: skip
@click.option("--any-sources", is_flag=True, help="Leave out seeds that have passed on any sources.")
def main(
    seeds: str,
    seed: int | None,
    trace: bool,
    without_faults: bool,
    minimize: bool,
    keep_going: bool,
    minutes: float,
    processes: int,
    record: Path | None,
    any_sources: bool,
) -> None:
    """Run the whole system with the faults of each seed, and print those that break a promise.

    \b
    Examples:
      python -m volcano.testing.faults --seeds 0:1000 --record .cache/faults.jsonl
      python -m volcano.testing.faults --seed 17 --minimize --trace
    """
    quiet()
    if seed is not None:
        sys.exit(run_one(seed, trace=trace, minimize=minimize, without_faults=without_faults))
    first, _, end = seeds.partition(":")
    chosen = range(int(first), int(end or int(first) + 1))
    kept = SeedRecord(record)
    sources = "" if any_sources else sources_digest()
    left = [each for each in chosen if not kept.has_passed(each, sources)]
    if len(left) < len(chosen):
        click.echo(f"{len(chosen) - len(left)} of {len(chosen)} seeds have passed before", err=True)
    watch, shown = Stopwatch(), 0.0
    done, failed, commits, cpu = 0, 0, 0, 0.0
    count = processes or len(os.sched_getaffinity(0))
    outcomes = run_campaign(
        left, count, minimize=minimize, may_begin=lambda: not minutes or watch.seconds() < 60 * minutes
    )
    with contextlib.closing(outcomes):
        for outcome in outcomes:
            kept.add(outcome)
            done, commits, cpu = done + 1, commits + outcome.commits, cpu + outcome.cpu_seconds
            if outcome.violations:
                failed += 1
                show(outcome)
                if not keep_going:
                    break
            if watch.seconds() - shown > REPORT_SECONDS:
                shown = watch.seconds()
                click.echo(f"{done} of {len(left)} seeds, {failed} failed, {shown / done:.2f} s each", err=True)
    passed, seconds = kept.passed(chosen), watch.seconds()
    click.echo(f"{done} seeds in {seconds:.0f} s ({cpu:.0f} s of CPU), {commits} commits, {failed} failed")
    here = passed.get(sources_digest(), 0)
    click.echo(f"of seeds {seeds}, {sum(passed.values())} have passed, {here} of them on these sources")
    sys.exit(1 if failed else 0)


def run_one(seed: int, *, trace: bool, minimize: bool, without_faults: bool) -> int:
    result = run_seed(seed, [] if without_faults else None)
    if result.violations and minimize:
        result = minimized(result)
    if trace:
        click.echo("\n".join(result.lines))
    click.echo(f"seed {seed}: {result.commits} commits, trace {result.digest[:16]}")
    for each in result.waits_without_faults:
        click.echo(f"  without faults too: {each}")
    if result.violations:
        show(SeedOutcome(seed, "", violations=result.violations, faults=[str(each) for each in result.faults]))
    return 1 if result.violations else 0


def show(outcome: SeedOutcome) -> None:
    click.echo(f"seed {outcome.seed} fails:")
    for violation in outcome.violations:
        click.echo(f"  {violation}")
    click.echo("with these faults:" if outcome.faults else "without a fault")
    for fault in outcome.faults:
        click.echo(f"  {fault}")


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":
        arguments = [sys.executable, "-m", "volcano.testing.faults", *sys.argv[1:]]
        os.execve(sys.executable, arguments, {**os.environ, **FIXED_HASHES})
    main()
