"""Types the blocks of a page into one shell, as a reader does in one terminal, and compares what each prints."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.documentation.blocks import Block, missing_line

MARK = re.compile(r"^== block \d+\n", re.MULTILINE)
MAX_SHOWN_CHARACTERS = 6_000
END_WHAT_RUNS = "trap 'for each in $(jobs -p); do kill $each; done; wait' EXIT\n"
"""What was started with & ends with the shell."""


def mark(number: int) -> str:
    """A command whose output is on a line of its own, whatever was printed before."""
    return f"printf '\\n== block %s\\n' {number}\n"


def type_in(
    blocks: Sequence[Block], folder: Path, variables: Mapping[str, str], seconds: float, prefix: Sequence[str] = ()
) -> None:
    """Fails at the first block that ends with another code than 0, or whose output lacks an expected line."""
    script = "".join(f"{mark(number)}{block.script}" for number, block in enumerate(blocks))
    script = f"{END_WHAT_RUNS}{script}{mark(len(blocks))}"
    done = subprocess.run(
        [*prefix, "bash", "-euo", "pipefail", "-c", script], cwd=folder, env=dict(variables), timeout=seconds,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    outputs = MARK.split(done.stdout)[1:]
    for number, block in enumerate(blocks):
        printed = outputs[number][-MAX_SHOWN_CHARACTERS:]
        assert number + 1 < len(outputs), f"this ended the page with code {done.returncode}:\n{block.script}\n{printed}"
        missing = missing_line(outputs[number], block.see)
        assert not missing, f"{missing!r} is not in the output of\n{block.script}\n{printed}"
    assert done.returncode == 0, outputs[-1][-MAX_SHOWN_CHARACTERS:]
