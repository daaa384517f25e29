"""`python -m tests.campaigns.kill --minutes 60`: a real `volcano up` is killed, stopped, starved of disk and damaged.

Clients write all the time and keep a ledger of what was acknowledged. After every attack the ledger is compared: nothing
may be lost or come back, no process may begin twice, and every job must complete in the end.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click

from tests.campaigns.ledger import Ledger, Submitter, Writer
from tests.system.real_system import JOBS, Up, processes_naming, wait_until

WRITERS = 2
DISK_MEGABYTES = 256  # small enough to be filled in a moment, large enough for what an hour writes
LONG_STOP_SECONDS = 50.0  # longer than a node may be silent
ANSWER_SECONDS = 300.0  # on a machine that is busy with other work
ATTACKS = {"kill": 20, "kill-soon": 6, "stop": 4, "stop-all": 2, "full-disk": 3, "damage": 3, "read-only": 2}


class Campaign:
    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.folder, self.chance, self.ledger = folder, chance, Ledger()
        self.marks = folder / "marks"
        self.marks.mkdir(mode=0o777)
        self.marks.chmod(0o777)
        self.up = Up(folder, "--node-cpu", "4")
        self.attacks: Counter[str] = Counter()
        self.problems: list[str] = []
        self.can_mount = mounted(self.up.data)

    def run(self, minutes: float) -> None:
        self.up.start()
        threads = [Writer(self.up, self.ledger, number, random.Random(number)) for number in range(WRITERS)]
        submitter = Submitter(self.up, self.ledger, self.marks, random.Random("jobs"))
        for thread in (*threads, submitter):
            thread.start()
        end = time.monotonic() + 60 * minutes
        while time.monotonic() < end and not self.problems:
            time.sleep(self.chance.uniform(0.5, 12))
            kind = self.chance.choices(list(ATTACKS), list(ATTACKS.values()))[0]
            if kind in ("full-disk", "read-only") and not self.can_mount:
                continue
            self.attack(kind)
        for thread in (*threads, submitter):
            thread.stopping.set()
            thread.join(60)
        self.finish()

    def attack(self, kind: str) -> None:
        began = time.monotonic()
        getattr(self, f"_{kind.replace('-', '_')}")()
        self.attacks[kind] += 1
        try:
            wait_until(lambda: answers(self.up), f"the server answers after {kind}", ANSWER_SECONDS)
        except AssertionError as error:
            self.problems.append(f"{error}: {self._disk()}: {self._state()}")
            click.echo(f"PROBLEM {self.problems[-1]}")
            return
        self.problems += [f"after {kind}: {each}" for each in self.ledger.problems(self.up.api)]
        self.problems += self._doubled()
        click.echo(f"{sum(self.attacks.values()):4} {kind:9} {time.monotonic() - began:5.1f} s, "
                   f"{self.ledger.written} writes, {len(self.ledger.jobs)} jobs, {len(self.problems)} problems; {self._disk()}")  # fmt: skip

    def _disk(self) -> str:
        """The largest of what lies in the data directory, in megabytes."""
        sizes: Counter[str] = Counter()
        for path in self.up.data.rglob("*"):
            with contextlib.suppress(OSError):
                found = path.lstat()
                if found.st_dev == self.up.data.stat().st_dev:  # and not a file system that a pod has mounted below it
                    sizes[path.relative_to(self.up.data).parts[0]] += found.st_blocks * 512
        return ", ".join(f"{name} {size / 1e6:.1f} MB" for name, size in sizes.most_common(3))

    def _state(self) -> str:
        """Why the server does not answer, as far as it says."""
        try:
            said = self.up.api.get("/readyz", verbose="true").raw.decode(errors="replace")
        except (OSError, ValueError) as error:
            said = repr(error)
        is_running = self.up.process is not None and self.up.process.poll() is None
        return f"{'running' if is_running else 'ended'}; {said}; {''.join(self.up.output[-30:])}"

    def _doubled(self) -> list[str]:
        began = Counter(lines(self.marks / "began"))
        return [f"{name} began {count} times" for name, count in began.items() if count > 1]

    def finish(self) -> None:
        """Every job completes, and each began and ended once."""
        if not answers(self.up):
            return  # a problem that is noted already
        with contextlib.suppress(AssertionError):
            wait_until(lambda: not self._unfinished(), "every job completes", 240)
        self.problems += [f"{name} is {phase}" for name, phase in self._unfinished()]
        self.problems += self._doubled()
        ended = set(lines(self.marks / "ended"))
        self.problems += [f"{name} completed and never ended" for name in self.ledger.jobs - ended]
        self.problems += self.ledger.problems(self.up.api)

    def _unfinished(self) -> list[tuple[str, str]]:
        found = []
        for item in self.up.api.get(JOBS).body["items"]:
            phase = (item.get("status") or {}).get("state", {}).get("phase", "")
            if phase != "Completed":
                found.append((item["metadata"]["name"], phase))
        return found

    # -- attacks -------------------------------------------------------------------------------------------------
    def _kill(self) -> None:
        self.up.kill()
        time.sleep(self.chance.choice((0, 0, 2)))
        self.up.start()

    def _kill_soon(self) -> None:
        """Again and again while it starts."""
        for _ in range(3):
            self.up.kill()
            process = subprocess.Popen(
                [*self.up.command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.folder,
                env=self.up.environment,
            )  # fmt: skip
            time.sleep(self.chance.uniform(0.1, 4))
            process.kill()
            process.wait()
        self.up.start()

    def _stop(self) -> None:
        assert self.up.process is not None
        self.up.process.send_signal(signal.SIGSTOP)
        time.sleep(self.chance.uniform(1, 8))
        self.up.process.send_signal(signal.SIGCONT)

    def _stop_all(self) -> None:
        """As a laptop that sleeps: nodes are Ready again within ten seconds."""
        assert self.up.process is not None
        stopped = sorted({self.up.process.pid, *processes_naming(str(self.up.data))})
        for each in stopped:
            with contextlib.suppress(ProcessLookupError):
                os.kill(each, signal.SIGSTOP)
        time.sleep(LONG_STOP_SECONDS)
        for each in stopped:
            with contextlib.suppress(ProcessLookupError):
                os.kill(each, signal.SIGCONT)
        wait_until(lambda: answers(self.up), "the server answers")
        with contextlib.suppress(AssertionError):
            wait_until(lambda: not_ready(self.up) == [], "all nodes are ready", 10)
        self.problems += [f"node {name} is not Ready ten seconds after a stop" for name in not_ready(self.up)]

    def _full_disk(self) -> None:
        ballast = self.up.data / "ballast"
        with contextlib.suppress(OSError), ballast.open("wb") as file:
            while True:
                file.write(b"\0" * 65536)
                file.flush()
        time.sleep(self.chance.uniform(1, 5))
        if self.chance.random() < 0.5:
            self.up.kill()
            ballast.unlink()
            self.up.start()
        else:
            ballast.unlink()

    def _damage(self) -> None:
        """A flipped bit must be noticed at the start; with the file as it was, everything is there."""
        self.up.kill()
        database = self.up.data / "volcano.db"
        victim = self.chance.choice(
            [each for each in (database, wal(database)) if each.exists() and each.stat().st_size]
        )
        kept = self.folder / "kept"
        shutil.copytree(self.up.data, kept, ignore=shutil.ignore_patterns("agent", "ballast"))
        at = self.chance.randrange(victim.stat().st_size)
        with victim.open("r+b") as file:
            file.seek(at)
            byte = file.read(1)[0]
            file.seek(at)
            file.write(bytes([byte ^ (1 << self.chance.randrange(8))]))
        try:
            self.up.start()
            shutil.rmtree(kept)
            return  # the bit was in a part that is not used; what was acknowledged is compared as after any attack
        except AssertionError:
            said = "".join(self.up.output[-20:])
            if "damaged" not in said:
                self.problems.append(f"{victim.name} flipped at {at} is not called damaged: {said[-500:]}")
        for each in self.up.data.glob("volcano.db*"):
            each.unlink()
        for each in kept.glob("volcano.db*"):
            shutil.copy2(each, self.up.data / each.name)
        shutil.rmtree(kept)
        self.up.start()

    def _read_only(self) -> None:
        """A start on a file system that cannot be written fails and changes nothing."""
        self.up.kill()
        supervisors_hold = subprocess.run(
            ["mount", "-o", "remount,ro", str(self.up.data)], capture_output=True, check=False
        )
        if supervisors_hold.returncode == 0:
            with contextlib.suppress(AssertionError):
                self.up.start()
                self.problems.append("it starts on a read-only file system")
            subprocess.run(["mount", "-o", "remount,rw", str(self.up.data)], check=True)
        self.up.start()


def wal(database: Path) -> Path:
    return database.with_name(database.name + "-wal")


def lines(path: Path) -> list[str]:
    return path.read_text().split() if path.exists() else []


def answers(up: Up) -> bool:
    try:
        return up.api.get("/readyz").status == 200
    except (OSError, ValueError):
        return False


def not_ready(up: Up) -> list[str]:
    found = []
    for node in up.api.get("/api/v1/nodes").body["items"]:
        conditions = {each["type"]: each["status"] for each in node["status"]["conditions"]}
        if conditions.get("Ready") != "True":
            found.append(node["metadata"]["name"])
    return found


def mounted(data: Path) -> bool:
    """A small file system for the data directory, where this user may mount one."""
    data.mkdir(mode=0o700, parents=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MEGABYTES}m,mode=0700", "volcano-campaign", str(data)]
    return os.geteuid() == 0 and subprocess.run(command, capture_output=True, check=False).returncode == 0


@contextlib.contextmanager
def campaign(chance: random.Random) -> Iterator[Campaign]:
    folder = Path(tempfile.mkdtemp(prefix="volcano-kill-"))
    folder.chmod(0o755)
    one = Campaign(folder, chance)
    try:
        yield one
    finally:
        one.up.clean_up()
        if one.can_mount:
            subprocess.run(["umount", "-l", str(one.up.data)], check=False)
        shutil.rmtree(folder, ignore_errors=True)


@click.command()
@click.option("--minutes", type=float, default=10.0, show_default=True)
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Of the attacks; when they meet what is up to the machine."
)
def main(minutes: float, seed: int) -> None:
    with campaign(random.Random(seed)) as one:
        one.run(minutes)
        kills = sum(one.attacks[kind] * weight for kind, weight in {"kill": 1, "kill-soon": 4, "damage": 1}.items())
        click.echo(f"{sum(one.attacks.values())} attacks ({dict(one.attacks)}), {kills} kills; {one.ledger.written} writes acknowledged, "
                   f"{len(one.ledger.jobs)} jobs; refused {dict(one.ledger.refused)}")  # fmt: skip
        for problem in one.problems:
            click.echo(f"PROBLEM {problem}")
    raise SystemExit(1 if one.problems else 0)


if __name__ == "__main__":
    main()
