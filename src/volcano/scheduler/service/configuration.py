"""The scheduler's configuration in force, and the file or ConfigMap key it is read from.

A file is polled, a ConfigMap is watched. A text that is no configuration is reported and leaves the one in force.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from volcano.api.core import ConfigMap
from volcano.api.errors import ApiError
from volcano.api.meta import Key
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock
from volcano.machinery.informer import Informer
from volcano.machinery.plan import Record, ref
from volcano.machinery.world import Change, Mirror
from volcano.scheduler.framework.config import (
    DEFAULT_CONFIG,
    MAX_CONFIG_CHARACTERS,
    InvalidConfig,
    SchedulerConfig,
    default_config,
    parse_config,
)
from volcano.scheduler.framework.lint import lint
from volcano.scheduler.service.registry import Registry
from volcano.scheduler.service.settings import SchedulerSettings

log = logging.getLogger(__name__)
FILE_POLL_INTERVAL: Final = timedelta(milliseconds=500)

Follow = Callable[[], Coroutine[Any, Any, None]]
"""Follows a configuration until cancelled, once it is called."""


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

    def __init__(
        self,
        registry: Registry,
        on_change: Callable[[], None] = lambda: None,
        record: Callable[[Record], None] = lambda _record: None,
    ) -> None:
        self.registry = registry
        self.source = "built in"  # of what is in force
        self._record = record
        self.current: SchedulerConfig = default_config(registry.actions)
        self.problem = ""  # why the newest text is not in force
        self.warnings: list[str] = []  # of the linter, about what is in force
        self.text = DEFAULT_CONFIG  # what is in force, as it was written
        self._newest: str | None = None
        self._has_newest = False
        self._on_change = on_change

    def offer(self, text: str | None, source: str) -> bool:
        """Put a text into force if it is a configuration; otherwise keep what is in force, and report why.

        None stands for a source that cannot be read.
        """
        if self._has_newest and self._newest == text:
            return not self.problem
        self._newest, self._has_newest = text, True
        try:
            if text is None:
                raise InvalidConfig("it cannot be read")
            config = parse_config(text, known_actions=self.registry.actions)
        except InvalidConfig as error:
            self.problem = f"{source}: {error}"
            log.error("the scheduler configuration stays as it was: %s", self.problem)
            return False
        self.problem = ""
        self.warnings = lint(config, self.registry.plugins)
        for warning in self.warnings:
            log.warning("%s: %s", source, warning)
        log.info("configuration from %s: actions %s", source, ", ".join(config.actions))
        self.current, self.text, self.source = config, text, source
        self._on_change()
        return True

    async def follow_file(self, path: str, clock: Clock) -> None:
        """Until cancelled."""
        while True:
            self.offer(await clock.run(lambda: read_file(path)), path)
            await clock.sleep(FILE_POLL_INTERVAL)

    async def read_configmap(self, place: ConfigMapKey, client: Client) -> None:
        """Read it once, before anything is scheduled; without one the built-in configuration stays in force."""
        try:
            found = await client.get(ConfigMap, place.key)
        except (ApiError, OSError, TimeoutError) as error:
            log.warning("ConfigMap %s cannot be read yet: %s", place.key, error)
            return
        self.offer((found.data or {}).get(place.entry), f"ConfigMap {place.key}, key {place.entry}")

    async def follow_configmap(self, place: ConfigMapKey, client: Client, clock: Clock) -> None:
        """Until cancelled."""
        mirror = Mirror(clock.now)

        def changed(change: Change[ConfigMap]) -> None:
            if change.new is not None and change.new.key == place.key:
                entries = change.new.data or {}
                before = (self._newest, self._has_newest)
                self.offer(entries.get(place.entry), f"ConfigMap {place.key}, key {place.entry}")
                if change.old is not None and before != (self._newest, self._has_newest):
                    self._record(self._event(change.new))

        mirror.listen(ConfigMap, changed)
        fields = f"metadata.name={place.key.name}"
        await Informer(client, mirror, clock, ConfigMap, namespace=place.key.namespace, fields=fields).run()

    def _event(self, source: ConfigMap) -> Record:
        """For who looks at the ConfigMap: whether its change is in force."""
        if self.problem:
            message = f"the configuration stays as it was: {self.problem}"
            return Record(ref(source), "ConfigurationRefused", message, "Warning")
        doubts = f"; doubts: {'; '.join(self.warnings)}" if self.warnings else ""
        message = f"in force: actions {', '.join(self.current.actions)}{doubts}"
        return Record(ref(source), "ConfigurationTaken", message, "Normal")


async def start_configuration(
    configuration: Configuration, settings: SchedulerSettings, client: Client, clock: Clock
) -> Follow | None:
    """Read the configuration that the settings name, and return what follows it, if there is anything to follow.

    InvalidConfig when the settings require a configuration and there is none.
    """
    following: Follow | None = None
    path = settings.scheduler_conf
    if path:
        configuration.offer(await clock.run(lambda: read_file(path)), path)
        following = functools.partial(configuration.follow_file, path, clock)
    elif settings.scheduler_configmap:
        place = ConfigMapKey.parse(settings.scheduler_configmap)
        await configuration.read_configmap(place, client)
        following = functools.partial(configuration.follow_configmap, place, client, clock)
    if settings.needs_own_configuration and (configuration.problem or not path):
        raise InvalidConfig(configuration.problem or "a configuration is required, and none is given")
    return following


def read_file(path: str) -> str | None:
    try:
        with Path(path).open(encoding="utf-8") as file:
            return file.read(MAX_CONFIG_CHARACTERS + 1)
    except (OSError, UnicodeDecodeError):
        return None
