"""Where the scheduler's configuration comes from, and which plugins there are.

A file (looked at every half second) or a key of a ConfigMap. A broken one changes nothing but what is said of it.
"""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final

from volcano.api.core import ConfigMap
from volcano.api.errors import ApiError
from volcano.api.meta import Key
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock
from volcano.machinery.informer import Informer
from volcano.machinery.world import Change, Mirror
from volcano.scheduler.actions import ACTIONS, Action
from volcano.scheduler.framework.config import (
    DEFAULT_CONFIG,
    LONGEST,
    InvalidConfig,
    SchedulerConfig,
    default_config,
    parse_config,
)
from volcano.scheduler.framework.lint import lint
from volcano.scheduler.framework.plugin import Plugin
from volcano.scheduler.plugins import PLUGINS
from volcano.scheduler.plugins.extender import Extender, reaching
from volcano.scheduler.service.extender_calls import ExtenderCalls

log = logging.getLogger(__name__)
PAUSE: Final = timedelta(milliseconds=500)
PLUGIN_GROUP: Final = "volcano.scheduler.plugins"
ACTION_GROUP: Final = "volcano.scheduler.actions"


class PluginError(ValueError):
    """A plugin that was asked for cannot be loaded; the message says which and why."""


@dataclass(slots=True, frozen=True)
class Registry:
    """The plugins and actions of one scheduler."""

    plugins: Mapping[str, type[Plugin]] = field(default_factory=lambda: dict(PLUGINS))
    actions: Mapping[str, Action] = field(default_factory=lambda: dict(ACTIONS))


def load_registry(plugins_dir: str = "") -> Registry:
    """Built-in ones, those of installed packages, and those of a directory; later ones replace earlier ones."""
    plugins: dict[str, type[Plugin]] = {**PLUGINS, Extender.name: reaching(ExtenderCalls())}
    actions: dict[str, Action] = dict(ACTIONS)
    for point in entry_points(group=PLUGIN_GROUP):
        plugins[point.name] = _plugin_class(point.load(), point.name)
    for point in entry_points(group=ACTION_GROUP):
        actions[point.name] = point.load()
    for path in sorted(Path(plugins_dir).glob("*.py")) if plugins_dir else ():
        if not path.stem.startswith("_"):
            found = _plugin_of_file(path)
            plugins[found.name] = found
    return Registry(plugins, actions)


def _plugin_of_file(path: Path) -> type[Plugin]:
    spec = importlib.util.spec_from_file_location(f"volcano_plugin_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise PluginError(f"{path} is not a Python module")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise PluginError(f"{path}: {type(error).__name__}: {error}") from error
    found = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Plugin) and value.__module__ == module.__name__
    ]
    if len(found) != 1:
        raise PluginError(f"{path} must define exactly one subclass of Plugin, not {len(found)}")
    return _plugin_class(found[0], found[0].__dict__.get("name") or path.stem.replace("_", "-"))


def _plugin_class(found: Any, name: str) -> type[Plugin]:
    if not (isinstance(found, type) and issubclass(found, Plugin)):
        raise PluginError(f"plugin {name} is not a subclass of Plugin but {found!r}")
    found.name = name
    return found


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
            await clock.sleep(PAUSE)

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
