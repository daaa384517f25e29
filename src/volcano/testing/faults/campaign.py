"""Many seeds in several processes. A file keeps which have passed on which sources: a campaign can be continued."""

from __future__ import annotations

import functools
import hashlib
import logging
import multiprocessing
import warnings
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path

import msgspec

import volcano
from volcano.machinery.clock import Stopwatch
from volcano.testing.faults.minimize import minimized
from volcano.testing.faults.run import run_seed

SEEDS_PER_PROCESS = 200
"""A process is replaced after this many, so that nothing which a library keeps can slow down a long campaign."""


class SeedOutcome(msgspec.Struct, omit_defaults=True):
    """How one seed ended, as a line of the record."""

    seed: int
    sources: str  # the digest of the program that was run
    violations: list[str] = []
    faults: list[str] = []  # of a seed that failed
    waits_without_faults: list[str] = []
    commits: int = 0
    cpu_seconds: float = 0.0


class SeedRecord:
    """The file of outcomes; the newest line about a seed counts."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._outcomes: dict[int, SeedOutcome] = {}
        if path is not None and path.exists():
            for line in path.read_bytes().splitlines():
                try:
                    outcome = msgspec.json.decode(line, type=SeedOutcome)
                except msgspec.DecodeError:
                    continue  # the process that wrote it was ended
                self._outcomes[outcome.seed] = outcome

    def add(self, outcome: SeedOutcome) -> None:
        self._outcomes[outcome.seed] = outcome
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("ab") as file:
                file.write(msgspec.json.encode(outcome) + b"\n")

    def has_passed(self, seed: int, sources: str) -> bool:
        """On these sources; empty sources stand for any."""
        found = self._outcomes.get(seed)
        return found is not None and not found.violations and sources in ("", found.sources)

    def passed(self, seeds: Iterable[int]) -> dict[str, int]:
        """How many of the seeds passed, by sources."""
        counts: dict[str, int] = {}
        for seed in seeds:
            found = self._outcomes.get(seed)
            if found is not None and not found.violations:
                counts[found.sources] = counts.get(found.sources, 0) + 1
        return counts


def run_campaign(
    seeds: Iterable[int], processes: int, *, minimize: bool, may_begin: Callable[[], bool]
) -> Generator[SeedOutcome, None, None]:
    """The outcomes as they come; closing the iterator begins no further seed."""
    waiting, running = iter(seeds), set[Future[SeedOutcome]]()
    work = functools.partial(outcome_of, sources=sources_digest(), minimize=minimize)
    pool = ProcessPoolExecutor(
        processes,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=quiet,
        max_tasks_per_child=SEEDS_PER_PROCESS,
    )
    with pool:
        try:
            while True:
                while len(running) < processes and may_begin() and (seed := next(waiting, None)) is not None:
                    running.add(pool.submit(work, seed))
                if not running:
                    return
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def outcome_of(seed: int, *, sources: str, minimize: bool) -> SeedOutcome:
    watch = Stopwatch()
    result = run_seed(seed)
    if result.violations and minimize:
        result = minimized(result)
    return SeedOutcome(
        seed,
        sources,
        violations=result.violations,
        faults=[str(each) for each in result.faults] if result.violations else [],
        waits_without_faults=result.waits_without_faults,
        commits=result.commits,
        cpu_seconds=round(watch.cpu_seconds(), 3),
    )


def quiet() -> None:
    """Components log what faults do to them, and a crash leaves coroutines that never started."""
    logging.getLogger("volcano").propagate = False
    logging.getLogger("volcano").setLevel(logging.ERROR)  # only errors are violations
    warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)


@functools.cache
def sources_digest() -> str:
    """Of all modules of the program: the same digest is the same run of every seed."""
    root = Path(volcano.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]
