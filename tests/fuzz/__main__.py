"""`python -m tests.fuzz --minutes 10`: every target in turn for as long; inputs that reach new lines are kept."""

from __future__ import annotations

import random
import resource
import time

import click

from tests.fuzz.learning import FuzzFailure, Learner
from tests.fuzz.targets import TARGETS

MAX_MEMORY_BYTES = 6 * 1024**3


@click.command()
@click.option("--minutes", type=float, default=10.0, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--only", multiple=True, help="Names of targets.")
@click.option("--keep/--forget", default=True, help="Write what was learned into tests/fuzz/corpus.")
def main(minutes: float, seed: int, only: tuple[str, ...], keep: bool) -> None:
    """Fuzz every parser that a client reaches; fails with the input that broke an invariant."""
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    chosen = {name: target for name, target in TARGETS.items() if not only or name in only}
    failed, seconds = [], 60 * minutes / max(1, len(chosen))
    for name, target in chosen.items():
        end = time.monotonic() + seconds
        try:
            learner = Learner(name, target, random.Random(f"{seed} {name}"))
            while time.monotonic() < end:
                learner.step()
        except FuzzFailure as failure:
            failed.append(name)
            click.echo(f"FAILED {name}: {failure}")
            continue
        if keep:
            learner.save()
        click.echo(f"{name:24} {learner.tried:7} inputs, {learner.reached:5} pairs of lines, "
                   f"{len(learner.inputs)} kept ({len(learner.inputs) - learner.learned_before} new)")  # fmt: skip
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
