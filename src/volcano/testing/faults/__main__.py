"""`python -m volcano.testing.faults`: run seeds, show what one does, or find the fewest faults with which it fails."""

from __future__ import annotations

import logging
import os
import sys

import click

from volcano.machinery.clock import Stopwatch
from volcano.testing.faults.minimize import minimized
from volcano.testing.faults.run import RunResult, run_seed

FIXED_HASHES = {"PYTHONHASHSEED": "0"}
"""Without it the order of sets differs from process to process, and a seed could not be replayed to the same bytes."""

SEEDS_BETWEEN_REPORTS = 100


@click.command()
@click.option("--seeds", default="0:100", show_default=True, help="FIRST:END, or one number.")
@click.option("--seed", type=int, default=None, help="Only this one.")
@click.option("--trace", is_flag=True, help="Print everything that happened.")
@click.option("--minimize", is_flag=True, help="Of a seed that fails, remove faults while it still does.")
@click.option("--keep-going", is_flag=True, help="Run all seeds, also after one has failed.")
@click.option("--minutes", type=float, default=0.0, help="Begin no further seed after this time; 0 is without end.")
def main(seeds: str, seed: int | None, trace: bool, minimize: bool, keep_going: bool, minutes: float) -> None:
    """Run the whole system with the faults of each seed, and print those that break a promise.

    \b
    Examples:
      python -m volcano.testing.faults --seeds 0:1000
      python -m volcano.testing.faults --seed 17 --minimize --trace
    """
    logging.getLogger("volcano").propagate = False
    first, _, end = seeds.partition(":")
    chosen = range(int(first), int(end or int(first) + 1)) if seed is None else range(seed, seed + 1)
    watch, done, failed, commits = Stopwatch(), 0, 0, 0
    for each in chosen:
        if done and done % SEEDS_BETWEEN_REPORTS == 0:
            click.echo(f"{done} seeds, {failed} failed", err=True)
        if minutes and watch.seconds() > 60 * minutes:
            break
        result = run_seed(each)
        done, commits = done + 1, commits + result.commits
        if result.violations:
            failed += 1
            show(minimized(result) if minimize else result, trace=trace)
            if not keep_going:
                break
        elif trace:
            click.echo("\n".join(result.lines))
    seconds = watch.seconds()
    click.echo(f"{done} seeds in {seconds:.0f} s, {commits} commits, {failed} failed")
    sys.exit(1 if failed else 0)


def show(result: RunResult, *, trace: bool) -> None:
    if trace:
        click.echo("\n".join(result.lines))
    click.echo(f"seed {result.seed} fails (trace {result.digest[:16]}):")
    for violation in result.violations:
        click.echo(f"  {violation}")
    click.echo("with these faults:" if result.faults else "without a fault")
    for fault in result.faults:
        click.echo(f"  {fault}")


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":
        arguments = [sys.executable, "-m", "volcano.testing.faults", *sys.argv[1:]]
        os.execve(sys.executable, arguments, {**os.environ, **FIXED_HASHES})
    main()
