"""Recordings: the inputs of cycles as scenario files, of which the newest MAX_RECORDINGS are kept."""

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
MAX_RECORDINGS: Final = 100


class RecordingRequests:
    """Which directories the next cycle is recorded to. Only the event loop touches it."""

    def __init__(self, directory: str = "") -> None:
        """With a directory, every cycle is recorded there."""
        self._always = (Path(directory),) if directory else ()
        self._requested: list[Path] = []

    @property
    def is_due(self) -> bool:
        return bool(self._always or self._requested)

    def request(self, directory: str) -> None:
        """Record the next cycle into this directory, too."""
        self._requested.append(Path(directory))

    def take(self) -> tuple[Path, ...]:
        """The directories for the cycle that begins now."""
        requested, self._requested = self._requested, []
        return (*requested, *self._always)


class RecordingWriter:
    """Writes recordings, and deletes the oldest of those it has written. Only the Decider touches it."""

    def __init__(self, *, redact: bool = False) -> None:
        self._redact = redact
        self._written: list[Path] = []

    def write(
        self,
        directories: Iterable[Path],
        snapshot: Snapshot,
        configuration: str,
        seed: int,
        hypernodes: Iterable[Resource],
    ) -> None:
        """A directory that cannot be written to is logged; scheduling goes on."""
        scenario = scenario_from(snapshot, configuration=configuration, seed=seed, hypernodes=hypernodes)
        body = msgspec.json.encode(redacted(scenario) if self._redact else scenario)
        for directory in directories:
            path = directory / f"cycle-{seed:08}.json"
            try:
                directory.mkdir(parents=True, exist_ok=True)
                path.write_bytes(body)
                path.chmod(0o600)
            except OSError as error:
                log.error("the cycle was not recorded: %s", error)
                continue
            self._written.append(path)
        while len(self._written) > MAX_RECORDINGS:
            self._written.pop(0).unlink(missing_ok=True)
