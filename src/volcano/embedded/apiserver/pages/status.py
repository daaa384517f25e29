"""How the server is and which API it speaks: /healthz, /livez and /readyz with their named checks, and /version."""

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
"""Empty when all is well, otherwise why not."""
KINDS: Final = ("healthz", "livez", "readyz")


class Health:
    def __init__(self) -> None:
        self._checks: dict[str, tuple[Check, bool]] = {"ping": (lambda: "", False)}

    def add(self, name: str, check: Check, *, readiness_only: bool = True) -> None:
        """A check that /readyz asks; /healthz and /livez too unless it is about readiness only."""
        self._checks[name] = (check, readiness_only)

    def reply(self, request: Request) -> Response | None:
        """The answer to a health path; None when the path is none."""
        parts = [part for part in request.path.split("/") if part]
        if not parts or parts[0] not in KINDS or len(parts) > 2:
            return None
        checks = {n: c for n, (c, ready_only) in self._checks.items() if parts[0] == "readyz" or not ready_only}
        if len(parts) == 2:
            if parts[1] not in checks:
                return Response(404, _TEXT, b"404 page not found\n")
            fault = checks[parts[1]]()
            return Response(
                500 if fault else 200, _TEXT, f"[-]{parts[1]} failed: {fault}\n".encode() if fault else b"ok"
            )
        excluded = set(request.params("exclude"))
        faults = {name: check() for name, check in checks.items() if name not in excluded}
        is_well = not any(faults.values())
        if is_well and not request.params("verbose"):
            return Response(200, _TEXT, b"ok")
        lines = [f"[-]{name} failed: {fault}" if fault else f"[+]{name} ok" for name, fault in faults.items()]
        lines.append(f"{parts[0]} check {'passed' if is_well else 'failed'}")
        return Response(200 if is_well else 500, _TEXT, ("\n".join(lines) + "\n").encode())


_TEXT: Final = {"content-type": "text/plain; charset=utf-8", "x-content-type-options": "nosniff"}
