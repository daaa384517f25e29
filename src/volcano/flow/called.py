"""What a `call` step runs on the node: import, call, leave the result as the container's termination message."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Final

import msgspec

MAX_RESULT_BYTES: Final = 4096
DEFAULT_PATH: Final = "/dev/termination-log"


def main(words: list[str]) -> int:
    function, encoded_arguments = words
    module, _, name = function.partition(":")
    sys.path.insert(0, os.getcwd())
    found: object = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    given = msgspec.json.decode(encoded_arguments)
    result = found(*given["arguments"], **given["named"])  # type: ignore[operator]
    encoded = msgspec.json.encode(result)
    if len(encoded) > MAX_RESULT_BYTES:
        print(f"the result takes {len(encoded)} bytes, at most {MAX_RESULT_BYTES} can be handed on", file=sys.stderr)
        return 1
    path = os.environ.get("VOLCANO_TERMINATION_LOG", DEFAULT_PATH)
    with open(path, "wb") as file:
        file.write(encoded)
    print(encoded.decode())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
