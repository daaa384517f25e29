"""How a Python program of a client family reports: one JSON object, feature → "yes", or what went wrong.

The programs run in environments of their own, so this module imports nothing of the project.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable


class Report:
    """The features of one family, in the order in which they are tried."""

    def __init__(self) -> None:
        self.kubeconfig, self.namespace = sys.argv[1:3]
        self._found: dict[str, str] = {}

    def feature(self, name: str) -> Callable[[Callable[[], object]], None]:
        """Try what the decorated function does; it fails by raising."""

        def run(question: Callable[[], object]) -> None:
            try:
                question()
                self.add(name, "yes")
            except Exception as error:  # whatever a client raises is the answer
                self.add(name, f"{type(error).__name__}: {error}")

        return run

    def add(self, name: str, answer: str) -> None:
        self._found[name] = answer[:400]

    def print(self) -> None:
        print(json.dumps(self._found))
