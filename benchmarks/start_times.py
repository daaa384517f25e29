"""How long a person waits: `volcano up` to ready, `vcctl job list`, `vcctl --help`; each started several times.

python benchmarks/start_times.py [--repeat 5]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BIN = Path(sys.executable).parent


def up(repeat: int) -> None:
    for what, options in (
        ("one process node, on disk", []),
        ("1,000 simulated nodes, in memory", ["--ephemeral", "--simulated-nodes", "1000"]),
    ):
        took = [one_up(options) for _ in range(repeat)]
        print(f"volcano up, {what}: median {statistics.median(took):.2f} s to ready (of {repeat})")


def one_up(options: list[str]) -> float:
    with tempfile.TemporaryDirectory(prefix="volcano-bench-") as folder:
        begun = time.perf_counter()
        command = [str(BIN / "volcano"), "up", "--data-dir", folder, "--port", "0", *options]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            assert process.stdout is not None
            next(line for line in process.stdout if "volcano is up" in line)
            took = time.perf_counter() - begun
            process.terminate()
            process.wait()
    return took


def commands(repeat: int) -> None:
    with tempfile.TemporaryDirectory(prefix="volcano-bench-") as folder:
        command = [
            str(BIN / "volcano"),
            "up",
            "--data-dir",
            folder,
            "--port",
            "0",
            "--ephemeral",
            "--simulated-nodes",
            "1",
        ]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            assert process.stdout is not None
            next(line for line in process.stdout if "volcano is up" in line)
            environment = {**os.environ, "KUBECONFIG": f"{folder}/kubeconfig"}
            for words in (["vcctl", "job", "list"], ["vcctl", "--help"], ["vqueues"]):
                took = []
                for _ in range(repeat * 2):
                    begun = time.perf_counter()
                    subprocess.run(
                        [str(BIN / words[0]), *words[1:]], env=environment, stdout=subprocess.DEVNULL, check=True
                    )
                    took.append(time.perf_counter() - begun)
                print(f"{' '.join(words)}: median {statistics.median(took) * 1000:.0f} ms")
            process.terminate()
            process.wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=5)
    given = parser.parse_args()
    up(given.repeat)
    commands(given.repeat)
