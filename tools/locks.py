"""The locked versions of all dependencies with their hashes: writes, installs, audits and lists (SBOM) them.

usage: locks.py write FOLDER | install FILE | audit FILE

`run.txt` has what the image and releases need, `dev.txt` the test tools too, `build.txt` what builds the wheel.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
LOCKS = ROOT / "deploy" / "locks"
OLDEST_PYTHON = "3.11"
INSTALL_SECONDS, AUDIT_SECONDS = 900, 180
HOW = "make lock"
_ENTRY = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)(?:\[[^\]]*\])?==(?P<version>[^\s;\\]+)")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


class Locked(NamedTuple):
    """One dependency as it is locked."""

    name: str
    version: str
    hashes: tuple[str, ...]


def read_lock(path: Path) -> list[Locked]:
    found: list[Locked] = []
    for line in path.read_text().replace("\\\n", " ").splitlines():
        entry = _ENTRY.match(line)
        if entry:
            found.append(Locked(normal(entry["name"]), entry["version"], tuple(_HASH.findall(line))))
    return found


def normal(name: str) -> str:
    """A package's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def bill_of_materials(version: str, locked: list[Locked]) -> dict[str, Any]:
    """A CycloneDX document: this package and everything it is installed with."""
    components = [
        {
            "type": "library",
            "bom-ref": f"pkg:pypi/{each.name}@{each.version}",
            "name": each.name,
            "version": each.version,
            "purl": f"pkg:pypi/{each.name}@{each.version}",
            "hashes": [{"alg": "SHA-256", "content": digest} for digest in each.hashes],
        }
        for each in sorted(locked)
    ]
    own = {"type": "application", "bom-ref": "volcano", "name": "volcano", "version": version}
    references = [each["bom-ref"] for each in components]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": own},
        "components": components,
        "dependencies": [{"ref": "volcano", "dependsOn": references}],
    }


def write(folder: Path) -> None:
    """Resolve all dependencies anew, for every supported Python and platform."""
    if shutil.which("uv", path=str(Path(sys.executable).parent)) is None:
        subprocess.run([sys.executable, "-m", "pip", "install", "-q", "uv"], check=True, timeout=INSTALL_SECONDS)
    folder.mkdir(exist_ok=True)
    options = [
        "--generate-hashes",
        "--universal",
        "--python-version",
        OLDEST_PYTHON,
        "--no-header",
        "--no-annotate",
        "-q",
    ]
    for name, words, given in (
        ("run.txt", ["pyproject.toml", "--extra", "postgresql"], None),
        ("dev.txt", ["pyproject.toml", "--extra", "dev"], None),
        ("build.txt", ["-"], "hatchling\n"),
    ):
        command = [sys.executable, "-m", "uv", "pip", "compile", *options, *words, "-o", str(folder / name)]
        subprocess.run(command, input=given, text=True, cwd=ROOT, check=True, timeout=INSTALL_SECONDS)
        print(f"{folder / name}: {len(read_lock(folder / name))} packages")


def install(file: Path) -> None:
    """Into the environment of this interpreter: exactly these versions, and this checkout."""
    uv = shutil.which("uv")
    pip = [uv, "pip", "install", "--python", sys.executable] if uv else [sys.executable, "-m", "pip", "install"]
    for words in (["--require-hashes", "-r", str(file)], ["--no-deps", "--no-build-isolation", "-e", str(ROOT)]):
        subprocess.run([*pip, "-q", *words], check=True, timeout=INSTALL_SECONDS)


def audit(file: Path) -> int:
    """1 when a locked version has a known weakness; 0 and a note when the database cannot be reached."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            venv.create(folder, with_pip=True)
            python = f"{folder}/bin/python"
            subprocess.run(
                [python, "-m", "pip", "install", "-q", "pip-audit>=2.7,<3"], check=True, timeout=INSTALL_SECONDS
            )
            done = subprocess.run(
                [python, "-m", "pip_audit", "-r", str(file), "--require-hashes", "--disable-pip", "-f", "json"],
                capture_output=True, text=True, timeout=AUDIT_SECONDS, check=False,
            )  # fmt: skip
        except (subprocess.SubprocessError, OSError) as error:
            print(f"NOT AUDITED: pip-audit could not be run: {error}")
            return 0
    return report(done.stdout, done.stderr)


def report(output: str, errors: str) -> int:
    """What pip-audit found, in words."""
    try:
        dependencies = json.loads(output)["dependencies"]
    except (ValueError, KeyError, TypeError):
        last = errors.strip().splitlines()[-1:] or ["no answer"]
        print(f"NOT AUDITED: the database of known weaknesses could not be reached: {last[0][:300]}")
        return 0
    weak = [(each["name"], each["version"], found["id"]) for each in dependencies for found in each.get("vulns", ())]
    for name, version, identity in weak:
        print(f"{name} {version} has the known weakness {identity}")
    print(f"{len(dependencies)} locked packages audited, {len(weak)} known weaknesses")
    return 1 if weak else 0


def main(words: list[str]) -> int:
    match words:
        case ["write", folder]:
            write(Path(folder))
        case ["install", file]:
            install(Path(file))
        case ["audit", file]:
            return audit(Path(file))
        case _:
            print(__doc__)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
