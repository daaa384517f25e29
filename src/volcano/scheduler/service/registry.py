"""Which plugins and actions a scheduler has: built-in ones, those of installed packages, those of a directory.

framework.contract checks each plugin class when it is defined; here its findings become a PluginError for the
operator, as does everything else that keeps a plugin from being loaded.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Final

from volcano.scheduler.actions import ACTIONS, Action
from volcano.scheduler.framework.contract import ContractError
from volcano.scheduler.framework.plugin import Plugin
from volcano.scheduler.plugins import PLUGINS
from volcano.scheduler.plugins.extender import Extender, reaching
from volcano.scheduler.service.extender_calls import ExtenderCalls

PLUGIN_GROUP: Final = "volcano.scheduler.plugins"
ACTION_GROUP: Final = "volcano.scheduler.actions"


class PluginError(ValueError):
    """A plugin cannot be loaded; the message names it and gives the reason."""


@dataclass(slots=True, frozen=True)
class Registry:
    """The plugins and actions of one scheduler."""

    plugins: Mapping[str, type[Plugin]] = field(default_factory=lambda: dict(PLUGINS))
    actions: Mapping[str, Action] = field(default_factory=lambda: dict(ACTIONS))


def load_registry(plugins_dir: str = "") -> Registry:
    """A package's plugin or action replaces a built-in one of the same name; a directory's plugin replaces both."""
    plugins: dict[str, type[Plugin]] = {**PLUGINS, Extender.name: reaching(ExtenderCalls())}
    actions: dict[str, Action] = dict(ACTIONS)
    for entry in entry_points(group=PLUGIN_GROUP):
        plugins[entry.name] = _plugin_class(_loaded(entry), entry.name)
    for entry in entry_points(group=ACTION_GROUP):
        actions[entry.name] = _loaded(entry)
    for path in sorted(Path(plugins_dir).glob("*.py")) if plugins_dir else ():
        if not path.stem.startswith("_"):
            found = _plugin_of_file(path)
            plugins[found.name] = found
    return Registry(plugins, actions)


def _loaded(entry: EntryPoint) -> Any:
    place = f"entry point {entry.name} = {entry.value}"
    try:
        return entry.load()
    except ContractError as error:
        raise PluginError(f"{place}:\n{error}") from error
    except Exception as error:
        raise PluginError(f"{place}: {type(error).__name__}: {error}") from error


def _plugin_of_file(path: Path) -> type[Plugin]:
    spec = importlib.util.spec_from_file_location(f"volcano_plugin_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise PluginError(f"{path} is not a Python module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses and error messages look a class's module up there
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[spec.name]
        if isinstance(error, ContractError):
            raise PluginError(str(error)) from error
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
