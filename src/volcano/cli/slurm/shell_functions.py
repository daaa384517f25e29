"""Shell functions of the submission, such as `module`, which bash hands on in variables that a pod cannot have by name.

sbatch takes them along with the environment. Kubernetes refuses the names of these variables (`BASH_FUNC_module%%`), so
they travel under other names and get their own back where the script starts. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

FUNCTION: Final = re.compile(r"BASH_FUNC_([\w:.-]+)%%")
LOADERS: Final = ("module", "ml")
"""Commands that are functions of the shell wherever they exist."""
LOADS: Final = re.compile(rf"\s*({'|'.join(LOADERS)})\s+(?:\w|-)")
MAX_FUNCTIONS: Final = 50
MAX_FUNCTION_BYTES: Final = 16 * 1024


def function_variables(option: str, environment: Mapping[str, str]) -> dict[str, str]:
    """VSUB_FUNCTIONS, and VSUB_FUNCTION_0 … with `NAME=VALUE` each, where --export takes everything along."""
    if "ALL" not in option.split(","):
        return {}
    found = [f"{name}={value}" for name, value in sorted(environment.items()) if FUNCTION.fullmatch(name)]
    found = [each for each in found if len(each) <= MAX_FUNCTION_BYTES][:MAX_FUNCTIONS]
    if not found:
        return {}
    return {"VSUB_FUNCTIONS": str(len(found)), **{f"VSUB_FUNCTION_{n}": each for n, each in enumerate(found)}}


def absent_programs(script: str, environment: Mapping[str, str]) -> list[str]:
    """A word for the first `module load` of a script when this shell has no such function to take along."""
    known = {match[1] for name in environment if (match := FUNCTION.fullmatch(name))}
    for number, line in enumerate(script.splitlines(), 1):
        match = LOADS.match(line)
        if match is not None and match[1] not in known:
            return [f"line {number}: {line.strip()}: `{match[1]}` is there only if the image or its profile has it"]
    return []
