"""`vcctl version`."""

from __future__ import annotations

import platform

from volcano import __version__
from volcano.cli.command_line import Called, say

NOT_PROVIDED = "Not provided."


def version(called: Called) -> None:
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    for name, value in (
        ("API Version", "v1alpha1"),
        ("Version", __version__),
        ("Git SHA", NOT_PROVIDED),
        ("Built At", NOT_PROVIDED),
        ("Go Version", f"none (Python {platform.python_version()})"),
        ("Go OS/Arch", f"{platform.system().lower()}/{machine}"),
    ):
        say(f"{name}: {value}")
