"""/healthz, /livez and /readyz with their named checks, and /version."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable
from typing import Final

from volcano import __version__
from volcano.machinery.transport import Request, Response

VERSION: Final = {
    "major": "1",
    "minor": "36",
    "gitVersion": f"v1.36.3+volcano-{__version__}",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": f"{sys.implementation.name}{platform.python_version()}",
    "compiler": sys.implementation.name,
    "platform": f"{sys.platform}/{platform.machine()}",
}

Check = Callable[[], str]
"""The reason of a failure; empty when the check passes."""
KINDS: Final = ("healthz", "livez", "readyz")


class Health:
    def __init__(self) -> None:
        self._checks: dict[str, tuple[Check, bool]] = {"ping": (lambda: "", False)}
        self._apart: dict[str, Check] = {}

    def add(self, name: str, check: Check, *, readiness_only: bool = True) -> None:
        """Add a check to /readyz, and unless `readiness_only` to /healthz and /livez."""
        self._checks[name] = (check, readiness_only)

    def add_apart(self, name: str, check: Check) -> None:
        """Add a check that is answered at /readyz/NAME and does not count in /readyz: requests do not depend on it."""
        self._apart[name] = check

    def reply(self, request: Request) -> Response | None:
        """The result of the checks; None when the path is no health path."""
        parts = [part for part in request.path.split("/") if part]
        if not parts or parts[0] not in KINDS or len(parts) > 2:
            return None
        checks = {n: c for n, (c, ready_only) in self._checks.items() if parts[0] == "readyz" or not ready_only}
        if len(parts) == 2:
            if parts[0] == "readyz":
                checks |= self._apart
            if parts[1] not in checks:
                return Response(404, _TEXT, b"404 page not found\n")
            failure = checks[parts[1]]()
            return Response(
                500 if failure else 200, _TEXT, f"[-]{parts[1]} failed: {failure}\n".encode() if failure else b"ok"
            )
        excluded = set(request.params("exclude"))
        failures = {name: check() for name, check in checks.items() if name not in excluded}
        is_healthy = not any(failures.values())
        if is_healthy and not request.params("verbose"):
            return Response(200, _TEXT, b"ok")
        lines = [f"[-]{name} failed: {failure}" if failure else f"[+]{name} ok" for name, failure in failures.items()]
        lines.append(f"{parts[0]} check {'passed' if is_healthy else 'failed'}")
        return Response(200 if is_healthy else 500, _TEXT, ("\n".join(lines) + "\n").encode())


_TEXT: Final = {"content-type": "text/plain; charset=utf-8", "x-content-type-options": "nosniff"}
