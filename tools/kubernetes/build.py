"""Build a real control plane for the tests: kube-apiserver, kube-controller-manager and etcd, from their Go modules.

The binaries are kept in a cache outside the checkout ($VOLCANO_KUBERNETES, else ~/.cache/volcano/kubernetes/<version>)
and built once: about eight minutes on two cores. Prints the folder. Needs Go; says so where it is missing.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

KUBERNETES = "v1.36.3"
STAGING = "v0.36.3"
ETCD = "v3.6.16"
PROGRAMS = ("kube-apiserver", "kube-controller-manager")


def folder() -> Path:
    given = os.environ.get("VOLCANO_KUBERNETES")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(given) if given else cache / "volcano" / "kubernetes" / f"{KUBERNETES}-etcd-{ETCD}"


def main() -> int:
    target = folder()
    missing = [name for name in (*PROGRAMS, "etcd") if not (target / name).is_file()]
    if missing and shutil.which("go") is None:
        say("Go is needed to build a real kube-apiserver, and it is not installed (https://go.dev/dl)")
        return 1
    target.mkdir(parents=True, exist_ok=True)
    if "etcd" in missing:
        say(f"building etcd {ETCD} …")
        build_etcd(target)
    wanted = [name for name in missing if name != "etcd"]
    if wanted:
        say(f"building {' and '.join(wanted)} {KUBERNETES} (about eight minutes on two cores) …")
        build_kubernetes(target, wanted)
    print(target)
    return 0


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def go(*words: str, cwd: Path) -> str:
    environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=mod", "GOWORK": "off"}
    done = subprocess.run(["go", *words], cwd=cwd, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


def build_etcd(target: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch)
        (work / "go.mod").write_text("module volcano.local/etcd\n\ngo 1.24\n")
        go("get", f"go.etcd.io/etcd/server/v3@{ETCD}", cwd=work)
        install(work, target, {"etcd": "go.etcd.io/etcd/server/v3"})


def build_kubernetes(target: Path, programs: list[str]) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch)
        (work / "go.mod").write_text(go_mod(work))
        install(work, target, {name: f"k8s.io/kubernetes/cmd/{name}" for name in programs})


def go_mod(work: Path) -> str:
    """k8s.io/kubernetes with its staging modules, which its own go.mod lists at v0.0.0, at their published versions."""
    found = json.loads(go("mod", "download", "-json", f"k8s.io/kubernetes@{KUBERNETES}", cwd=scratch_module(work)))
    own = Path(found["GoMod"]).read_text()
    staging = sorted(set(re.findall(r"^\s*(k8s\.io/\S+) v0\.0\.0(?:\s|$)", own, re.M)))
    version = re.search(r"^go (\S+)", own, re.M)
    replaced = "\n".join(f"\t{module} => {module} {STAGING}" for module in staging)
    go_version = version.group(1) if version else "1.24"
    required = f"require k8s.io/kubernetes {KUBERNETES}"
    return f"module volcano.local/kubernetes\n\ngo {go_version}\n\n{required}\n\nreplace (\n{replaced}\n)\n"


def scratch_module(work: Path) -> Path:
    (work / "go.mod").write_text("module volcano.local/kubernetes\n\ngo 1.24\n")
    return work


def install(work: Path, target: Path, programs: dict[str, str]) -> None:
    """Built beside and moved into place, so that a build cut short leaves nothing that looks finished."""
    place, minor = "k8s.io/component-base/version", KUBERNETES.split(".")[1]
    version = f"-X {place}.gitVersion={KUBERNETES} -X {place}.gitMajor=1 -X {place}.gitMinor={minor}"
    for name, package in programs.items():
        fresh = target / f".{name}.{os.getpid()}"
        go("build", "-trimpath", "-ldflags", f"-s -w {version}", "-o", str(fresh), package, cwd=work)
        fresh.replace(target / name)


if __name__ == "__main__":
    sys.exit(main())
