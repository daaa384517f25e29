"""How long a person waits: `volcano up` to ready, `vcctl job list`, `vcctl --help`; each started several times.

CPU time is beside the time by the clock, which other work on the machine changes.

python benchmarks/start_times.py [--repeat 5]
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

BIN = Path(sys.executable).parent
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""Compiled modules are kept, as an installation has them."""


def up(repeat: int) -> None:
    """To ready, with a data directory that is new and again with the same; and with many nodes in memory."""
    taken: dict[str, list[tuple[float, float]]] = {}
    for _ in range(repeat):
        with tempfile.TemporaryDirectory(prefix="volcano-bench-") as folder:
            for what in ("a new data directory", "an existing one"):
                taken.setdefault(f"one process node, {what}", []).append(one_up(folder))
        with tempfile.TemporaryDirectory(prefix="volcano-bench-") as folder:
            many = one_up(folder, "--ephemeral", "--simulated-nodes", "1000")
            taken.setdefault("1,000 simulated nodes, in memory", []).append(many)
    for what, each in taken.items():
        print(f"volcano up, {what}: {medians(each)} to ready (of {repeat})")


def one_up(folder: str, *options: str) -> tuple[float, float]:
    """Seconds by the clock, and of CPU time of all threads."""
    with ready(folder, *options) as (process, seconds):
        tasks = Path(f"/proc/{process.pid}/task").iterdir()
        return seconds, sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


@contextlib.contextmanager
def ready(folder: str, *options: str) -> Iterator[tuple[subprocess.Popen[str], float]]:
    command = [str(BIN / "volcano"), "up", "--data-dir", folder, "--port", "0", "--dashboard", "0", *options]
    begun = time.perf_counter()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=ENVIRONMENT
    ) as process:
        assert process.stdout is not None
        next(line for line in process.stdout if "volcano is up" in line)
        yield process, time.perf_counter() - begun
        process.terminate()
        process.communicate()


def commands(repeat: int) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="volcano-bench-") as folder,
        ready(folder, "--ephemeral", "--simulated-nodes", "1"),
    ):
        environment = {**ENVIRONMENT, "KUBECONFIG": f"{folder}/kubeconfig"}
        for words in (["vcctl", "job", "list"], ["vcctl", "--help"], ["vqueues"]):
            took = [one_command(words, environment) for _ in range(repeat * 2)]
            print(f"{' '.join(words)}: {medians(took)}")


def one_command(words: list[str], environment: dict[str, str]) -> tuple[float, float]:
    begun, before = time.perf_counter(), children_seconds()
    subprocess.run([str(BIN / words[0]), *words[1:]], env=environment, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begun, children_seconds() - before


def children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def medians(taken: list[tuple[float, float]]) -> str:
    clock, cpu = (statistics.median(each) for each in zip(*taken, strict=True))
    return f"median {clock:.3f} s, {cpu:.3f} s of CPU time"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=5)
    given = parser.parse_args()
    up(given.repeat)
    commands(given.repeat)
