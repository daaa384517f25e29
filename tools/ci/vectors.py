"""Compare the scheduler's decisions with recorded ones, and report apart what is not yet expected to agree.

usage: vectors.py VECTORS_FOLDER VOLCANO

`tables/` and `random/` must agree. `later/` must agree too, except for the cases that
vectors_open.txt beside this file names; one of those that agrees is reported, so that the list only gets shorter.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

OPEN = Path(__file__).with_name("vectors_open.txt")
TOLERANCE = 1e-6
REPLAY_LIMIT_SECONDS = 1800


def load_checker(folder: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("check", folder / "check.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def replay(volcano: str, files: list[Path]) -> dict[str, Any]:
    """The outcome of each file."""
    words = [volcano, "replay", "--scores", *map(str, files)]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, timeout=REPLAY_LIMIT_SECONDS)
    rows = (json.loads(line) for line in done.stdout.splitlines() if line.startswith("{"))
    return {row["file"]: row for row in rows}


def differences(checker: ModuleType, file: Path, outcome: dict[str, Any] | None) -> list[str]:
    if outcome is None:
        return ["no result"]
    if "error" in outcome:
        return [outcome["error"]]
    return list(checker.differences(json.loads(file.read_text()), outcome, TOLERANCE))


def main(folder: Path, volcano: str) -> int:
    checker = load_checker(folder)
    files = sorted(folder.rglob("*.json"))
    outcomes = replay(volcano, files)
    lines = (line.partition("#")[0].strip() for line in OPEN.read_text().splitlines())
    still_open = {folder / "later" / line for line in lines if line}
    failed, differing, agreeing = 0, [], []
    for file in files:
        found = differences(checker, file, outcomes.get(str(file)))
        name = file.relative_to(folder)
        if file in still_open:
            (differing if found else agreeing).append(str(name))
        elif found:
            failed += 1
            print(f"FAIL {name}", *found[:2], sep="\n     ")
    if differing:
        print(f"not yet expected to agree ({len(differing)}, from {OPEN.name}):", *differing, sep="\n     ")
    if agreeing:
        print(f"now agree, and are to be taken out of {OPEN.name}:", *agreeing, sep="\n     ")
    expected = len(files) - len(differing) - len(agreeing)
    print(f"{expected - failed} of {expected} recorded cases agree, {failed} differ; {len(still_open)} are open")
    return 1 if failed or agreeing else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
