"""The scheduler's configuration in force, and the file or ConfigMap key it is read from.

A file is polled, a ConfigMap is watched. A text that is no configuration is reported and leaves the one in force.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

from volcano.api.core import ConfigMap
from volcano.api.errors import ApiError
from volcano.api.meta import Key
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock
from volcano.machinery.informer import Informer
from volcano.machinery.world import Change, Mirror
from volcano.scheduler.framework.config import (
    DEFAULT_CONFIG,
    LONGEST,
    InvalidConfig,
    SchedulerConfig,
    default_config,
    parse_config,
)
from volcano.scheduler.framework.lint import lint
from volcano.scheduler.service.registry import Registry

log = logging.getLogger(__name__)
FILE_POLL_INTERVAL: Final = timedelta(milliseconds=500)


@dataclass(slots=True, frozen=True)
class ConfigMapKey:
    """`NAMESPACE/NAME:KEY`."""

    key: Key
    entry: str

    @classmethod
    def parse(cls, text: str) -> ConfigMapKey:
        place, _, entry = text.partition(":")
        namespace, slash, name = place.partition("/")
        if not (slash and namespace and name and entry):
            raise ValueError(f"{text!r} is not NAMESPACE/NAME:KEY")
        return cls(Key(namespace, name), entry)


class Configuration:
    """The configuration in force."""

    def __init__(self, registry: Registry, on_change: Callable[[], None] = lambda: None) -> None:
        self.registry = registry
        self.current: SchedulerConfig = default_config(registry.actions)
        self.problem = ""  # why the newest text is not in force
        self.doubts: list[str] = []
        self.text = DEFAULT_CONFIG  # what is in force, as it was written
        self._offered: tuple[str | None] | None = None  # nothing yet, or a text (or that there was none to read)
        self._on_change = on_change

    def offer(self, text: str | None, source: str) -> bool:
        """Put a text into force if it is a configuration; otherwise keep what is, and say why."""
        if self._offered == (text,):
            return not self.problem
        self._offered = (text,)
        try:
            if text is None:
                raise InvalidConfig("it cannot be read")
            config = parse_config(text, known_actions=self.registry.actions)
        except InvalidConfig as error:
            self.problem = f"{source}: {error}"
            log.error("the scheduler configuration stays as it was: %s", self.problem)
            return False
        self.problem = ""
        self.doubts = lint(config, self.registry.plugins)
        for doubt in self.doubts:
            log.warning("%s: %s", source, doubt)
        log.info("configuration from %s: actions %s", source, ", ".join(config.actions))
        self.current, self.text = config, text
        self._on_change()
        return True

    async def follow_file(self, path: str, clock: Clock) -> None:
        """Until cancelled."""
        while True:
            self.offer(await clock.run(lambda: read_file(path)), path)
            await clock.sleep(FILE_POLL_INTERVAL)

    async def read_configmap(self, place: ConfigMapKey, client: Client) -> None:
        """Once, before anything is scheduled; without one the built-in configuration holds until it appears."""
        try:
            found = await client.get(ConfigMap, place.key)
        except (ApiError, OSError, TimeoutError) as error:
            log.warning("ConfigMap %s cannot be read yet: %s", place.key, error)
            return
        self.offer((found.data or {}).get(place.entry), f"ConfigMap {place.key}, key {place.entry}")

    async def follow_configmap(self, place: ConfigMapKey, client: Client, clock: Clock) -> None:
        """Until cancelled."""
        mirror = Mirror(clock.now)

        def hear(change: Change[ConfigMap]) -> None:
            if change.new is not None and change.new.key == place.key:
                entries = change.new.data or {}
                self.offer(entries.get(place.entry), f"ConfigMap {place.key}, key {place.entry}")

        mirror.listen(ConfigMap, hear)
        fields = f"metadata.name={place.key.name}"
        await Informer(client, mirror, clock, ConfigMap, namespace=place.key.namespace, fields=fields).run()


def read_file(path: str) -> str | None:
    try:
        with Path(path).open(encoding="utf-8") as file:
            return file.read(LONGEST + 1)
    except (OSError, UnicodeDecodeError):
        return None
