"""`python -m tests.fuzz.api --minutes 10`: every operation of our OpenAPI documents in turn, round by round."""

from __future__ import annotations

import random
import sys
import time

import click

from tests.fuzz.api.campaign import Attack
from tests.fuzz.api.system import attacked_system, enter_own_network

EXAMPLES_OF_A_ROUND = 5
CANNOT = 75
"""The exit status where no network without neighbours can be made (EX_TEMPFAIL)."""


@click.command()
@click.option("--minutes", type=float, default=10.0, show_default=True)
@click.option("--examples", type=int, help="One round with so many requests of each operation, and no longer.")
@click.option("--operations", type=int, help="Only so many operations, chosen by the seed.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--only", default="", help="Only documents with this in their name, such as apps/v1 or dashboard.")
def main(minutes: float, examples: int | None, operations: int | None, seed: int, only: str) -> None:
    """Fails with the requests whose answers are a server error, hang or are not as the document says."""
    try:
        enter_own_network()
    except OSError as error:
        click.echo(f"generated objects name addresses, and no network of its own can be made: {error}")
        sys.exit(CANNOT)
    with attacked_system() as system:
        attack = Attack(system, base_seed=seed)
        chosen = attack.operations(only)
        if operations is not None:
            chosen = random.Random(seed).sample(chosen, min(operations, len(chosen)))
        end, number = time.monotonic() + 60 * minutes, 0
        while time.monotonic() < end:
            attack.run(chosen, examples or EXAMPLES_OF_A_ROUND, end, number)
            number += 1
            if examples is not None:
                break
        health = system.health_problems()
        grown = (system.resident_bytes() - system.memory_at_start) / 2**20
    tally = attack.tally
    for key, text in tally.failures.items():
        click.echo(f"FAILED {key}\n  {text}")
    for problem in health:
        click.echo(f"FAILED afterwards: {problem}")
    by_status = ", ".join(f"{count} × {status}" for status, count in sorted(tally.answers.items()))
    click.echo(
        f"{tally.sent} requests to {len(chosen)} operations, {number} rounds: {by_status}; memory {grown:+.0f} MB; "
        f"{len(tally.failures)} failures; {tally.not_generated.total()} could not be made"
    )
    sys.exit(1 if tally.failures or health else 0)


if __name__ == "__main__":
    main()
