"""`python -m tests.campaigns.soak --minutes 60`: jobs come and go on a real `volcano up`, and nothing may grow for ever.

Memory, the database, open files and the latency of a read are sampled all the time; the slope of each over the second
half (the first fills caches) must stay within its bound. Afterwards, with nothing going on, memory must come back.
"""

from __future__ import annotations

import random
import shutil
import statistics
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import click

from tests.campaigns.ledger import MAPS, Ledger, Submitter, Writer, every
from tests.system.real_system import JOBS, Up

SAMPLE_SECONDS = 5.0
IDLE_SECONDS = 60.0
MAX_KEPT_JOBS = 30
MAX_IDLE_GROWTH = 0.20
"""Of memory, between the warm start and the end with nothing going on."""
WARM_UP_SHARE = 0.25


@dataclass
class Measure:
    """One figure over time, and how much it may grow in an hour."""

    name: str
    unit: str
    max_per_hour: float
    samples: list[tuple[float, float]] = field(default_factory=list)

    def slope(self) -> float:
        """Units per hour over the second half, by the median of pairwise slopes: a few outliers do not matter."""
        half = self.samples[len(self.samples) // 2 :]
        slopes = [(b - a) / (t - s) for i, (s, a) in enumerate(half) for t, b in half[i + 1 :] if t > s]
        return statistics.median(slopes) * 3600 if slopes else 0.0


class Cleaner(threading.Thread):
    """Deletes finished jobs beyond some, as their users would."""

    def __init__(self, up: Up, ledger: Ledger) -> None:
        super().__init__(daemon=True)
        self._up, self._ledger = up, ledger
        self.stopping = threading.Event()

    def run(self) -> None:
        while not self.stopping.wait(3.0):
            api = self._up.api
            done = [item["metadata"]["name"] for item in every(api, JOBS)
                    if (item.get("status") or {}).get("state", {}).get("phase") in ("Completed", "Failed")]  # fmt: skip
            for name in done[: max(0, len(done) - MAX_KEPT_JOBS)]:
                self._ledger.jobs.discard(name)
                api("DELETE", f"{JOBS}/{name}")


class Soak:
    def __init__(self, folder: Path, minutes: float) -> None:
        self.up, self.ledger = Up(folder, "--node-cpu", "4"), Ledger()
        self.marks = folder / "marks"
        self.marks.mkdir()
        self.marks.chmod(0o777)
        short = max(1.0, 60 / minutes)  # over few minutes noise counts for more
        self.memory = Measure("memory", "MB/h", 30 * short)
        self.measures = [
            self.memory,
            Measure("database", "MB/h", 60 * short),
            Measure("open files", "/h", 60 * short),
            Measure("latency of a read", "ms/h", 20 * short),
        ]
        self._began = time.monotonic()

    def sample(self) -> None:
        now = time.monotonic() - self._began
        asked = time.monotonic()
        assert self.up.api.get(f"{MAPS}?limit=1").status == 200
        latency = (time.monotonic() - asked) * 1000
        database = sum(each.stat().st_size for each in self.up.data.glob("volcano.db*")) / 2**20
        for measure, value in zip(self.measures, (self.megabytes(), database, self.open_files(), latency)):
            measure.samples.append((now, value))

    def megabytes(self) -> float:
        assert self.up.process is not None
        status = Path(f"/proc/{self.up.process.pid}/status").read_text()
        return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))) / 1024

    def open_files(self) -> float:
        assert self.up.process is not None
        return float(len(list(Path(f"/proc/{self.up.process.pid}/fd").iterdir())))

    def run(self, minutes: float) -> list[str]:
        self.up.start()
        writers = [Writer(self.up, self.ledger, number, random.Random(number)) for number in range(2)]
        threads = [
            *writers,
            Submitter(self.up, self.ledger, self.marks, random.Random("jobs")),
            Cleaner(self.up, self.ledger),
        ]
        for thread in threads:
            thread.start()
        end = time.monotonic() + 60 * minutes
        while time.monotonic() < end:
            time.sleep(SAMPLE_SECONDS)
            self.sample()
        busy = self.memory.samples[int(len(self.memory.samples) * WARM_UP_SHARE)][1]
        for thread in threads:
            thread.stopping.set()
            thread.join(60)
        time.sleep(IDLE_SECONDS)
        idle = self.megabytes()
        click.echo(f"{minutes:g} minutes: {self.ledger.written} writes, refused {dict(self.ledger.refused)}")
        problems = self.ledger.problems(self.up.api)
        for measure in self.measures:
            first, last, slope = measure.samples[0][1], measure.samples[-1][1], measure.slope()
            click.echo(
                f"{measure.name:18} {first:8.1f} → {last:8.1f}, {slope:+8.2f} {measure.unit} (at most {measure.max_per_hour:g})"
            )
            if slope > measure.max_per_hour:
                problems.append(f"{measure.name} grows by {slope:.1f} {measure.unit}")
        click.echo(
            f"memory after {IDLE_SECONDS:g} s with nothing going on: {idle:.1f} MB; after the warm-up {busy:.1f} MB"
        )
        if idle > busy * (1 + MAX_IDLE_GROWTH):
            problems.append(f"memory stays at {idle:.0f} MB, {busy:.0f} MB were used after the warm-up")
        return problems


@click.command()
@click.option("--minutes", type=float, default=10.0, show_default=True)
def main(minutes: float) -> None:
    folder = Path(tempfile.mkdtemp(prefix="volcano-soak-"))
    folder.chmod(0o755)
    soak = Soak(folder, minutes)
    try:
        problems = soak.run(minutes)
    finally:
        soak.up.clean_up()
        shutil.rmtree(folder, ignore_errors=True)
    for problem in problems:
        click.echo(f"PROBLEM {problem}")
    raise SystemExit(1 if problems else 0)


if __name__ == "__main__":
    main()
