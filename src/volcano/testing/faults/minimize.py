"""The fewest faults with which a seed still fails: they are removed one by one while the run fails without them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from volcano.testing.faults.plan import Fault
from volcano.testing.faults.run import RunResult, run_seed

Runs = Callable[[int, Sequence[Fault]], RunResult]


def minimized(result: RunResult, run: Runs = run_seed) -> RunResult:
    """The run with the remaining faults; any violation counts, since one fault may hide another."""
    smallest = result
    is_smaller = True
    while is_smaller and smallest.faults:
        is_smaller = False
        for fault in list(smallest.faults):
            fewer = run(result.seed, [each for each in smallest.faults if each != fault])
            if fewer.violations:
                smallest, is_smaller = fewer, True
    return smallest
