"""A fixed piece of work of one CPU, so that figures of different machines can be compared; nothing is decided by it."""

from __future__ import annotations

from typing import Final

import msgspec

from volcano.machinery.clock import Stopwatch

ROUNDS: Final = 5
DOCUMENTS_PER_ROUND: Final = 2000
PODS_PER_DOCUMENT: Final = 20


def calibration_seconds() -> float:
    """CPU seconds of the fastest of some rounds: JSON and dictionaries, which is what a batch system spends most on."""
    return min(_round() for _ in range(ROUNDS))


def calibration_line() -> str:
    return f"calibration: a fixed piece of work takes {calibration_seconds() * 1000:.0f} ms of CPU time on this machine"


def _round() -> float:
    watch = Stopwatch()
    for number in range(DOCUMENTS_PER_ROUND):
        names = [f"pod-{number}-{each}" for each in range(PODS_PER_DOCUMENT)]
        pods = [
            {"metadata": {"name": name, "labels": {"job": str(number)}}, "spec": {"cpu": len(name)}} for name in names
        ]
        read = msgspec.json.decode(msgspec.json.encode({"items": pods}))
        by_name = {pod["metadata"]["name"]: pod for pod in read["items"]}
        sorted(by_name, key=lambda name, by_name=by_name: (-by_name[name]["spec"]["cpu"], name))  # type: ignore[misc]
    return watch.cpu_seconds()
