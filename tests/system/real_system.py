"""`volcano up` and `volcano run` as separate programs with real processes: start them, kill them, leave nothing behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.running_server import Client
from volcano.embedded.agent.network.network import BridgedNetwork

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
VOLCANO = [sys.executable, "-m", "volcano"]
DEADLINE = 100.0
"""Generous: machines that run tests may be busy with others."""
JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
PODS = "/api/v1/namespaces/default/pods"


def wait_until(holds: Callable[[], Any], what: str, deadline: float = DEADLINE) -> Any:
    """What `holds` answers, once it is true."""
    end = time.monotonic() + deadline
    while True:
        answer = holds()
        if answer:
            return answer
        if time.monotonic() > end:
            raise AssertionError(f"never: {what}")
        time.sleep(0.05)


def processes_naming(text: str) -> list[int]:
    """Processes with this in their command line; a data directory's name is nowhere else."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            with contextlib.suppress(OSError):
                if text.encode() in Path(f"/proc/{entry}/cmdline").read_bytes():
                    found.append(int(entry))
    return found


def environment(folder: Path, **more: str) -> dict[str, str]:
    """For a program that must not find another system than the test's."""
    kept = {name: value for name, value in os.environ.items() if name not in ("KUBECONFIG", "VOLCANO_DATA_DIR")}
    temporary = folder / "tmp"
    temporary.mkdir(exist_ok=True)
    return {**kept, "HOME": str(folder), "TMPDIR": str(temporary), "PYTHONUNBUFFERED": "1", **more}


class Up:
    """A `volcano up` on a data directory of its own; it can be killed and started again."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder, self.data, self.options = folder, folder / "data", options
        self.output: list[str] = []
        self.process: subprocess.Popen[str] | None = None
        self.is_up = False  # it has said so since it was started last
        self.start_seconds = DEADLINE
        self.waits_for_components = True  # nodes are registered a moment after the API server is ready

    @property
    def command(self) -> list[str]:
        return [*VOLCANO, "up", "--data-dir", str(self.data), "--port", "0", *self.options]

    @property
    def environment(self) -> dict[str, str]:
        return environment(self.folder)

    def start(self) -> None:
        self.process = subprocess.Popen(
            self.command,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=self.environment, cwd=self.folder,
        )  # fmt: skip
        ready = threading.Event()
        self.is_up = False
        threading.Thread(target=self._read, args=(self.process, ready), daemon=True).start()
        # A program that has said why it ends may still be ending: only its line counts.
        assert ready.wait(self.start_seconds) and self.is_up, "".join(self.output)
        if self.waits_for_components:
            wait_until(lambda: self.api.get("/readyz/components").status == 200, "all components are ready")

    def _read(self, process: subprocess.Popen[str], ready: threading.Event) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self.output.append(line)
            if "volcano is up" in line:
                self.is_up = True
                ready.set()
        ready.set()

    def kill(self) -> None:
        """Without a word, as when memory runs out."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(DEADLINE)

    def stop(self) -> int:
        assert self.process is not None
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(DEADLINE)

    @property
    def api(self) -> Client:
        return Client(self.data / "kubeconfig")

    @property
    def supervisors(self) -> list[int]:
        return processes_naming(str(self.data / "agent"))

    def phase(self, job: str) -> str:
        answer = self.api.get(f"{JOBS}/{job}")
        assert answer.status == 200, answer
        return str(((answer.body.get("status") or {}).get("state") or {}).get("phase", ""))

    def pods(self) -> dict[str, Any]:
        return {pod["metadata"]["name"]: pod for pod in self.api.get(PODS).body["items"]}

    def logs(self, pod: str, **query: Any) -> str:
        return self.api.get(f"{PODS}/{pod}/log", **query).raw.decode()

    def until_phase(self, job: str, *phases: str) -> str:
        return str(wait_until(lambda: (now := self.phase(job)) in phases and now, f"{job} {' or '.join(phases)}"))

    def clean_up(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(45)
            except subprocess.TimeoutExpired:
                self.kill()
        for supervisor in self.supervisors:
            with contextlib.suppress(ProcessLookupError):
                os.kill(supervisor, signal.SIGTERM)  # its pods and their networks end with it
        wait_until(lambda: not self.supervisors, "the supervisor ended")
        if os.geteuid() == 0:
            BridgedNetwork(self.data / "agent").close()  # one that was killed could not


@contextlib.contextmanager
def running_up(folder: Path, *options: str) -> Iterator[Up]:
    up = Up(folder, *options)
    try:
        up.start()
        yield up
    finally:
        up.clean_up()


def volcano_run(folder: Path, *arguments: str | Path, timeout: float = DEADLINE) -> subprocess.CompletedProcess[str]:
    """`volcano run` to its end."""
    return subprocess.run(
        [*VOLCANO, "run", *map(str, arguments)],
        capture_output=True, text=True, timeout=timeout, env=environment(folder), cwd=folder, check=False,
    )  # fmt: skip
