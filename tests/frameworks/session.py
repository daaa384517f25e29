"""Runs one framework's page: installs what is missing, starts a `volcano up` of its own, runs the blocks, asks `works`."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.documentation.blocks import Block, Page, PageError, missing_line, read_page
from tests.frameworks.framework import ROOT, Framework
from tests.kubernetes.helm import find_helm
from tests.system.real_system import Up, environment, running_up

CACHE = Path(os.environ.get("FRAMEWORKS") or Path.home() / ".cache" / "volcano" / "frameworks")
LOGS = CACHE / "logs"
INSTALLED = CACHE / "installed"
MAX_OUTPUT_CHARACTERS = 2_000_000
REPORT_SECONDS = 20


class FrameworkFailed(Exception):
    """The page's lines did not do what the page says."""


@dataclass
class Outcome:
    """One row of the table."""

    framework: Framework
    works: str
    why: str = ""
    install_seconds: float = 0.0
    run_seconds: float = 0.0


@dataclass
class Transcript:
    """What was typed and what came of it, kept in a file for whom a row says no."""

    path: Path
    parts: list[str] = field(default_factory=list)

    def add(self, title: str, text: str) -> None:
        self.parts.append(f"==== {title}\n{text}\n")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text("".join(self.parts))


def run_framework(framework: Framework) -> Outcome:
    outcome = Outcome(framework, "no")
    transcript = Transcript(LOGS / f"{framework.name}.txt")
    missing = [word for word in framework.programs if not is_installed(word.partition("=")[0])]
    if missing:
        packages = " ".join(word.partition("=")[2] or word for word in missing)
        return Outcome(framework, "skipped", f"apt-get install {packages}")
    try:
        page = read_page(framework.page)
        if not page.runs or not page.up:
            raise PageError(f"{page.path.name}: a block `sh up` and one `sh run` are needed")
        start = time.monotonic()
        install(framework, page, transcript)
        outcome.install_seconds = time.monotonic() - start
        start = time.monotonic()
        run_page(framework, page, transcript)
        outcome.run_seconds = time.monotonic() - start
        outcome.works = "yes"
    except (FrameworkFailed, PageError, AssertionError) as error:
        outcome.run_seconds = time.monotonic() - start if outcome.install_seconds else 0.0
        outcome.why = f"{error} ({transcript.path})"
    return outcome


def is_installed(program: str) -> bool:
    """Helm may also come out of the cache of the tests on a real control plane."""
    if program == "helm" and (helm := find_helm()) is not None:
        os.environ["PATH"] = os.pathsep.join((os.environ.get("PATH", os.defpath), str(helm.parent)))
    return shutil.which(program) is not None


def install(framework: Framework, page: Page, transcript: Transcript) -> None:
    """Each block once for each text of it and of the examples it names, so that a second run needs no network."""
    for number, block in enumerate(page.installs):
        digest = hashlib.sha256(b"".join([block.script.encode(), *examples_of(block.script)])).hexdigest()[:16]
        mark = INSTALLED / f"{framework.name}-{number}-{digest}"
        if mark.exists():
            continue
        CACHE.mkdir(parents=True, exist_ok=True)
        run_block(block, {**os.environ, **page_variables()}, framework.install_seconds, transcript)
        INSTALLED.mkdir(exist_ok=True)
        mark.touch()


def examples_of(script: str) -> Iterator[bytes]:
    """What the files below examples/ contain that a script names, by themselves or by their folder."""
    for word in re.findall(r"examples/[\w./-]+", script):
        place = ROOT / word
        for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if path.is_file() and path.suffix != ".pyc":
                yield path.read_bytes()


def run_page(framework: Framework, page: Page, transcript: Transcript) -> None:
    with tempfile.TemporaryDirectory(prefix=f"volcano-{framework.name}-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        options = words_of(page.up, environment(folder, **page_variables()))[2:]
        with running_up(folder, *options) as up:
            variables = environment(folder, KUBECONFIG=str(up.data / "kubeconfig"), VOLCANO_DATA_DIR=str(up.data))
            try:
                for block in page.runs:
                    run_block(block, {**variables, **page_variables()}, framework.run_seconds, transcript)
                framework.works(up.api)
            except (FrameworkFailed, AssertionError):
                report(up, variables, transcript)
                raise


def page_variables() -> dict[str, str]:
    """What the pages' lines rely on: the folder of environments, and the project's programs on the PATH."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
    return {"FRAMEWORKS": str(CACHE), "PATH": path}


def words_of(line: str, variables: dict[str, str]) -> list[str]:
    """The line as the shell splits it, variables expanded, relative to the project's folder."""
    printed = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {line}"], env=variables, cwd=ROOT, capture_output=True, text=True, check=True
    )
    return printed.stdout.split("\0")[:-1]


def run_block(block: Block, variables: dict[str, str], seconds: float, transcript: Transcript) -> None:
    """In a session of its own, which ends with the block; all that the lines left running in the shell's group ends too."""
    process = subprocess.Popen(
        ["bash", "-euo", "pipefail", "-c", block.script], env=variables, cwd=ROOT, text=True, errors="replace",
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip
    late = ""
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        late = f"not done after {seconds} s"
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
    transcript.add(f"$ {block.script.strip()}", output[-MAX_OUTPUT_CHARACTERS:])
    first = block.script.strip().splitlines()[0]
    if late or process.returncode:
        raise FrameworkFailed(f"{first!r}: {late or f'exit code {process.returncode}'}")
    if missing := missing_line(output, block.see):
        raise FrameworkFailed(f"{first!r} does not print {missing!r}")


def report(up: Up, variables: dict[str, str], transcript: Transcript) -> None:
    """What one would ask first: pods, events, logs, and what the system itself printed."""
    commands = (
        "kubectl get pods,jobs.batch.volcano.sh,podgroups -A -o wide",
        "kubectl get events -A --sort-by=.lastTimestamp | tail -n 60",
        "for pod in $(kubectl get pods -A -o jsonpath='{range .items[*]}{.metadata.namespace}/{.metadata.name} {end}'); do"
        ' echo "-- $pod"; kubectl logs -n "${pod%/*}" "${pod#*/}" --all-containers --tail 40; done',
    )
    for command in commands:
        try:
            done = subprocess.run(
                ["bash", "-c", command], env={**variables, **page_variables()}, capture_output=True, text=True,
                timeout=REPORT_SECONDS, check=False,
            )  # fmt: skip
            transcript.add(command, done.stdout + done.stderr)
        except subprocess.TimeoutExpired:
            transcript.add(command, f"no answer in {REPORT_SECONDS} s")
    transcript.add("volcano up", "".join(up.output)[-MAX_OUTPUT_CHARACTERS:])
