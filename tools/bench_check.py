"""Compare the speed of this tree with that of an earlier commit: `make bench-check [BASE=COMMIT] [ONLY=cycle,jobs]`.

Both run the same small pieces of work (benchmarks/check_cases.py) in turn on this machine. What is compared is CPU
time, or counted instructions where the machine counts them (`perf stat`), since wall time is too noisy beside other
work. The base is the newest tag; without tags it is the last commit that changed the version in pyproject.toml.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
CASES: Final = ROOT / "benchmarks" / "check_cases.py"
WORKTREES: Final = ROOT / ".cache" / "bench-check"
MAX_SLOWDOWN: Final = 1.15
CLEAR_MARGIN: Final = 0.05
"""A ratio this close to the limit is measured again before it is judged."""
FIRST_ROUNDS: Final = 3
MAX_ROUNDS: Final = 9
CASE_SECONDS: Final = 300
TOO_SLOW, NOTHING_COMPARED = 1, 2


class Incomparable(Exception):
    """A case that the base cannot run, or that fails on this tree."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", default="", help="the commit to compare with [default: the last release]")
    parser.add_argument("--only", default="", help="names of cases, separated by commas")
    given = parser.parse_args()
    base = git("rev-parse", "--verify", f"{given.base or last_release()}^{{commit}}")
    sources = {"base": worktree(base) / "src", "this": ROOT / "src"}
    names = subprocess.check_output([sys.executable, CASES, "--list"], text=True).split()
    chosen = [name for name in names if not given.only or name in given.only.split(",")]
    counter = instruction_counter()
    print(
        f"compared with {git('log', '-1', '--format=%h %cs %s', base)}; by {'instructions' if counter else 'CPU time'}"
    )
    slow, compared = [], 0
    for name in chosen:
        try:
            ratio, rounds, costs = compare(name, sources, counter)
        except Incomparable as error:
            print(f"{name:12} not compared: {error}")
            continue
        compared += 1
        print(
            f"{name:12} {costs['base']} before, {costs['this']} now: {ratio:.2f} of before ({rounds} rounds)",
            flush=True,
        )
        if ratio > MAX_SLOWDOWN:
            slow.append(name)
    if slow:
        print(f"slower by more than {MAX_SLOWDOWN - 1:.0%}: {', '.join(slow)}")
        sys.exit(TOO_SLOW)
    if not compared:
        print("no case could be compared")
        sys.exit(NOTHING_COMPARED)
    print("no case is slower than that: passed")


def compare(name: str, sources: dict[str, Path], counter: list[str]) -> tuple[float, int, dict[str, str]]:
    """This tree's cost as a share of the base's. Each round runs both, and the order changes from round to round."""
    taken: dict[str, list[float]] = {"base": [], "this": []}
    for round_number in range(MAX_ROUNDS):
        for which in ("base", "this") if round_number % 2 else ("this", "base"):
            taken[which].append(cost(name, sources[which], counter))
        ratio = slowdown(taken["base"], taken["this"])
        if round_number + 1 >= FIRST_ROUNDS and abs(ratio - MAX_SLOWDOWN) > CLEAR_MARGIN:
            break
    unit = "M instructions" if counter else "ms"
    return ratio, round_number + 1, {which: f"{min(each):.0f} {unit}" for which, each in taken.items()}


def slowdown(base: list[float], this: list[float]) -> float:
    """The smaller of two estimates, since noise adds to either: by the fastest runs, and by the median round."""
    return min(min(this) / min(base), statistics.median(now / before for before, now in zip(base, this, strict=True)))


def cost(name: str, source: Path, counter: list[str]) -> float:
    """Milliseconds of CPU time of the measured part, or millions of instructions of the whole process."""
    environment = {**os.environ, "PYTHONPATH": str(source), "PYTHONHASHSEED": "0"}
    command = [*counter, sys.executable, CASES, name]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=CASE_SECONDS, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise Incomparable(f"{source.parent.name} ends with {done.returncode}: {last}")
    if counter:
        return next(float(line.split(",")[0]) for line in done.stderr.splitlines() if ",instructions" in line) / 1e6
    return float(json.loads(done.stdout.splitlines()[-1])["cpuSeconds"]) * 1e3


def instruction_counter() -> list[str]:
    """The command that counts instructions, where the machine can."""
    if shutil.which("perf") is None:
        return []
    command = ["perf", "stat", "-x,", "-e", "instructions:u"]
    done = subprocess.run([*command, "true"], capture_output=True, text=True, check=False)
    return command if done.returncode == 0 and done.stderr.split(",")[0].isdigit() else []


def last_release() -> str:
    tags = git("tag", "--sort=-creatordate", "--merged", "HEAD").split()
    if tags:
        return tags[0]
    return git("log", "-1", "--format=%H", "-G^version = ", "--", "pyproject.toml")


def worktree(commit: str) -> Path:
    """The files of a commit below .cache, kept for the next run."""
    folder = WORKTREES / commit[:12]
    if not (folder / "src").is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        archive = subprocess.run(["git", "archive", commit, "src"], cwd=ROOT, capture_output=True, check=True)
        subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
    return folder


def git(*words: str) -> str:
    return subprocess.check_output(["git", *words], cwd=ROOT, text=True).strip()


if __name__ == "__main__":
    main()
