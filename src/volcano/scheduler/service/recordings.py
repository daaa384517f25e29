"""Recordings: the inputs of cycles as scenario files in a directory, the newest hundred of them."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from volcano.api.meta import Resource
from volcano.scheduler.core.snapshot import Snapshot
from volcano.scheduler.trace import redacted, scenario_from

log = logging.getLogger(__name__)
KEPT: Final = 100


class Recordings:
    """With a directory every cycle is recorded; `ask` records the next one even so."""

    def __init__(self, directory: str = "", *, redact: bool = False) -> None:
        self._directory, self._redact = directory, redact
        self._asked: list[Path] = []
        self.written: list[Path] = []

    @property
    def is_due(self) -> bool:
        return bool(self._directory or self._asked)

    def ask(self, directory: str) -> None:
        """Record the next cycle into this directory."""
        self._asked.append(Path(directory))

    def write(self, snapshot: Snapshot, configuration: str, seed: int, hypernodes: Iterable[Resource]) -> None:
        scenario = scenario_from(snapshot, configuration=configuration, seed=seed, hypernodes=hypernodes)
        body = msgspec.json.encode(redacted(scenario) if self._redact else scenario)
        places, self._asked = [*self._asked, *([Path(self._directory)] if self._directory else [])], []
        for place in places:
            path = place / f"cycle-{seed:08}.json"
            try:
                place.mkdir(parents=True, exist_ok=True)
                path.write_bytes(body)
                path.chmod(0o600)
            except OSError as error:
                log.error("the cycle was not recorded: %s", error)
                continue
            self.written.append(path)
        while len(self.written) > KEPT:
            self.written.pop(0).unlink(missing_ok=True)
