"""Build a release and try it: wheel and sdist, each installed into an empty environment and run there, the wheel on
every supported Python that this machine has.

usage: release.py [--out FOLDER]

The version is `__version__` in src/volcano/__init__.py, which the build reads too. Each distribution must report that
version, and the wheel must run examples/gang.yaml to its end. Nothing is uploaded: the last line names the commands
that publish.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tools.ci.pythons import VERSIONS, interpreter
from tools.locks import LOCKS, bill_of_materials, read_lock

ROOT = Path(__file__).resolve().parents[1]
INSTALL_LIMIT_SECONDS = 900
RUN_LIMIT_SECONDS = 300


def run(words: list[str], *, limit: float, folder: Path = ROOT, **more: str) -> str:
    """The program's output; it must succeed. The environment knows nothing of this checkout."""
    known = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")} | more
    done = subprocess.run(words, cwd=folder, env=known, text=True, stdout=subprocess.PIPE, timeout=limit)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(words)} failed with status {done.returncode}\n{done.stdout}")
    return done.stdout


def version() -> str:
    namespace: dict[str, str] = {}
    exec((ROOT / "src" / "volcano" / "__init__.py").read_text(), namespace)
    return namespace["__version__"]


def build(out: Path) -> tuple[Path, Path]:
    """The wheel and the sdist of this version; the wheel is built from the sdist, so the sdist is complete."""
    if out.exists():
        shutil.rmtree(out)
    run([sys.executable, "-m", "build", "--outdir", str(out)], limit=INSTALL_LIMIT_SECONDS)
    (wheel,), (sdist,) = out.glob(f"volcano-{version()}-*.whl"), out.glob(f"volcano-{version()}.tar.gz")
    return wheel, sdist


def install(distribution: Path, folder: Path, python: str = sys.executable) -> Path:
    """The `volcano` of an empty environment with nothing but this distribution and what it requires."""
    run([python, "-m", "venv", str(folder)], limit=INSTALL_LIMIT_SECONDS)
    run([str(folder / "bin" / "pip"), "install", "-q", str(distribution)], limit=INSTALL_LIMIT_SECONDS)
    return folder / "bin" / "volcano"


def check_version(volcano: Path, folder: Path) -> None:
    reported = run([str(volcano), "--version"], limit=RUN_LIMIT_SECONDS, folder=folder).split()
    if version() not in reported:
        raise SystemExit(f"{volcano} reports {' '.join(reported)}, not {version()}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    out = parser.parse_args().out.resolve()
    wheel, sdist = build(out)
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        for distribution in (wheel, sdist):
            volcano = install(distribution, folder / distribution.suffix.strip("."))
            check_version(volcano, folder)
            print(f"{distribution.name}: installs into an empty environment and reports {version()}")
            if distribution == wheel:
                gang = [str(volcano), "run", str(ROOT / "examples" / "gang.yaml")]
                # a home of its own: a system of this user that runs already is not what is tried
                print(run(gang, limit=RUN_LIMIT_SECONDS, folder=folder, HOME=str(folder)).rstrip())
        for other in VERSIONS:
            python = interpreter(other)
            if python is None:
                print(f"Python {other} is not here: {wheel.name} was not tried on it")
                continue
            volcano = install(wheel, folder / other, python)
            check_version(volcano, folder)
            gang = [str(volcano), "run", str(ROOT / "examples" / "gang.yaml")]
            last = run(gang, limit=RUN_LIMIT_SECONDS, folder=folder, HOME=str(folder)).rstrip().splitlines()[-1]
            print(f"{wheel.name} on Python {other}: {last}")
    sbom = out / f"volcano-{version()}.cdx.json"
    sbom.write_text(json.dumps(bill_of_materials(version(), read_lock(LOCKS / "run.txt")), indent=1))
    print(f"{sbom.name}: what the release is made of, with the hashes of deploy/locks/run.txt")
    print(f"ready in {out}; to publish: git tag v{version()} && git push --tags && twine upload {out}/*")


if __name__ == "__main__":
    main()
