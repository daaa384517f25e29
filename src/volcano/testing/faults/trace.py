"""Trace: what happened in a run, one line each, so that two runs of one seed can be compared byte by byte."""

from __future__ import annotations

import asyncio
import hashlib


class Trace:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def add(self, who: str, what: str) -> None:
        self.lines.append(f"{asyncio.get_running_loop().time():10.3f} {who:<12} {what}")

    @property
    def digest(self) -> str:
        return hashlib.sha256("\n".join(self.lines).encode()).hexdigest()
