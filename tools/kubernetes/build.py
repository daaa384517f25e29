"""Build a real control plane for the tests: kube-apiserver, kube-controller-manager and etcd, from their Go modules.

The programs are kept in a cache outside the checkout ($VOLCANO_KUBERNETES, else ~/.cache/volcano/kubernetes/<version>)
and built once: about eight minutes on two cores. Prints the folder. Which Go does it is toolchain.py's.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from toolchain import NoGo, find_go
from wheels import cache

KUBERNETES = "v1.36.3"
STAGING = "v0.36.3"
ETCD = "v3.6.16"
PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager")
SCRATCH = ".building-"
QUIET_SECONDS = 20
"""How often progress is told where nobody watches a terminal."""


class Failed(Exception):
    """Go could not do what it was asked for."""


def folder() -> Path:
    given = os.environ.get("VOLCANO_KUBERNETES")
    return Path(given) if given else cache() / "kubernetes" / f"{KUBERNETES}-etcd-{ETCD}"


def missing(target: Path) -> list[str]:
    return [name for name in PROGRAMS if not (target / name).is_file()]


def main(wanted: list[str]) -> int:
    """Programs may be named; all are built otherwise."""
    if unknown := [name for name in wanted if name not in PROGRAMS]:
        say(f"unknown: {', '.join(unknown)}; there are {', '.join(PROGRAMS)}")
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    target = folder()
    try:
        if set(wanted or PROGRAMS) & set(missing(target)):
            build(target, wanted)
    except (NoGo, Failed, OSError) as error:
        say(f"the control plane was not built: {error}")
        return 1
    except KeyboardInterrupt:
        say("\ninterrupted; what was finished is kept")
        return 130
    print(target)
    return 0


def build(target: Path, wanted: list[str]) -> None:
    target.mkdir(parents=True, exist_ok=True)
    with only_one(target):
        # Looked at again: another may have built them meanwhile
        names = [name for name in missing(target) if not wanted or name in wanted]
        if not names:
            return
        go = find_go()
        if "etcd" in names:
            with Module(go, target, f"etcd {ETCD}") as module:
                module.write("module volcano.local/etcd\n\ngo 1.24\n")
                module.run("get", f"go.etcd.io/etcd/server/v3@{ETCD}")
                module.build({"etcd": "go.etcd.io/etcd/server/v3"})
        if programs := {name: f"k8s.io/kubernetes/cmd/{name}" for name in names if name != "etcd"}:
            with Module(go, target, f"{' and '.join(programs)} {KUBERNETES}") as module:
                module.write(kubernetes_module(module))
                module.build(programs)


@contextmanager
def only_one(target: Path) -> Iterator[None]:
    """One build at a time in a folder; a second waits for the first, and clears what a killed one left."""
    with (target / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another build is under way in {target}; waiting for it …")
            fcntl.flock(lock, fcntl.LOCK_EX)
        for left in target.glob(f"{SCRATCH}*"):
            shutil.rmtree(left, ignore_errors=True)
        yield


def kubernetes_module(module: Module) -> str:
    """k8s.io/kubernetes with its staging modules, which its own go.mod lists at v0.0.0, at their published versions."""
    module.write("module volcano.local/kubernetes\n\ngo 1.24\n")
    found = json.loads(module.run("mod", "download", "-json", f"k8s.io/kubernetes@{KUBERNETES}"))
    own = Path(found["GoMod"]).read_text()
    staging = sorted(set(re.findall(r"^\s*(k8s\.io/\S+) v0\.0\.0(?:\s|$)", own, re.M)))
    version = re.search(r"^go (\S+)", own, re.M)
    replaced = "\n".join(f"\t{name} => {name} {STAGING}" for name in staging)
    go_version = version.group(1) if version else "1.24"
    required = f"require k8s.io/kubernetes {KUBERNETES}"
    return f"module volcano.local/kubernetes\n\ngo {go_version}\n\n{required}\n\nreplace (\n{replaced}\n)\n"


class Module:
    """A Go module of our own that only asks for somebody else's programs, in a folder that goes away afterwards."""

    def __init__(self, go: Path, target: Path, title: str) -> None:
        self._go, self._target, self._title = go, target, title
        self._scratch = Path(tempfile.mkdtemp(dir=target, prefix=SCRATCH))
        (self._scratch / "tmp").mkdir()

    def __enter__(self) -> Module:
        say(f"{self._title}: fetching its modules …")
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._scratch, ignore_errors=True)

    def write(self, go_mod: str) -> None:
        (self._scratch / "go.mod").write_text(go_mod)

    def build(self, programs: dict[str, str]) -> None:
        """Programs by name; they are moved into place when they are whole."""
        packages = len(self.run("list", "-deps", *programs.values()).splitlines())
        say(f"{self._title}: building, {packages} packages …")
        place, minor = "k8s.io/component-base/version", KUBERNETES.split(".")[1]
        version = f"-X {place}.gitVersion={KUBERNETES} -X {place}.gitMajor=1 -X {place}.gitMinor={minor}"
        began = time.monotonic()
        for name, package in programs.items():
            fresh = self._scratch / name
            self.run("build", "-v", "-trimpath", "-ldflags", f"-s -w {version}", "-o", str(fresh), package, of=packages)
            fresh.replace(self._target / name)
        say(f"{self._title}: built in {lasted(began)}")

    def run(self, *words: str, of: int = 0) -> str:
        """What a command of Go prints. What it says on the way is counted, and shown only when it fails."""
        environment = {
            **os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=mod", "GOWORK": "off", "GOTOOLCHAIN": "local",
            "GOTMPDIR": str(self._scratch / "tmp"),
        }  # fmt: skip
        progress = Progress(self._title, of)
        with (self._scratch / "answer").open("w+") as answer:
            command = [str(self._go), *words]
            process = subprocess.Popen(
                command, cwd=self._scratch, env=environment, stdout=answer, stderr=subprocess.PIPE, text=True
            )
            try:
                assert process.stderr is not None
                for line in process.stderr:
                    progress.note(line.rstrip())
                code = process.wait()
            finally:
                if process.poll() is None:
                    process.send_signal(signal.SIGINT)  # Go removes its own scratch files then
                    process.wait()
            progress.end()
            answer.seek(0)
            printed = answer.read()
        if code != 0:
            raise Failed("\n".join([f"go {words[0]} failed:", *progress.said, printed[-500:]]).rstrip())
        return printed


class Progress:
    """Counts what Go fetches and compiles: on a terminal in one line that changes, elsewhere in a line now and then."""

    def __init__(self, title: str, packages: int) -> None:
        self._title, self._packages = title, packages
        self._fetched = self._compiled = 0
        self._began = self._told = time.monotonic()
        self._watched = sys.stderr.isatty()
        self.said: deque[str] = deque(maxlen=30)

    def note(self, line: str) -> None:
        if line.startswith("go: downloading"):
            self._fetched += 1
        elif " " not in line:
            self._compiled += 1
        else:
            self.said.append(line)
        if time.monotonic() - self._told >= (0.5 if self._watched else QUIET_SECONDS):
            self._told = time.monotonic()
            self._tell()

    def _tell(self) -> None:
        compiled = f"{self._compiled} of at most {self._packages} packages"
        counted = compiled if self._compiled else f"{self._fetched} modules fetched"
        text = f"  {self._title}: {counted}, {lasted(self._began)}"
        if self._watched:
            print(f"\r{text}\x1b[K", end="", file=sys.stderr, flush=True)
        else:
            say(text)

    def end(self) -> None:
        if self._watched:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def lasted(began: float) -> str:
    minutes, seconds = divmod(int(time.monotonic() - began), 60)
    return f"{minutes} min {seconds:02} s"


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
