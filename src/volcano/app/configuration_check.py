"""`volcano scheduler --check-conf FILE`: all that is wrong with a configuration at once, each with its line."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import click
import yaml

from volcano.api.bounded_yaml import BoundedYamlError, compose_all_yaml
from volcano.app.settings import SCHEDULER_CONFIGMAP
from volcano.scheduler.framework.config import ConfigProblem, ConfigReading
from volcano.scheduler.framework.lint import doubts
from volcano.scheduler.service.configuration import read_file
from volcano.scheduler.service.registry import PluginError, load_registry

FINE, WRONG, UNREADABLE = 0, 1, 2
CONFIG_MAP: Final = "ConfigMap"
LITERAL_STYLE: Final = "|"
"""Of a value whose lines are lines of the file."""


class CheckedText(NamedTuple):
    """A configuration, and how many lines of the file are above it; None where lines cannot be told."""

    text: str
    lines_above: int | None = 0


def check_configuration(path: str, plugins_dir: str = "") -> int:
    """Prints everything that is wrong or will not work as written; the exit code."""
    try:
        registry = load_registry(plugins_dir)
    except PluginError as error:
        click.echo(f"Error: {error}", err=True)
        return WRONG
    try:
        checked = _found_in(_read(path), path)
    except _Unreadable as error:
        click.echo(f"Error: {error}", err=True)
        return UNREADABLE
    reading = ConfigReading(checked.text, registry.actions)
    found = [("error", each) for each in reading.problems]
    found += [("warning", each) for each in (*reading.ignored, *_doubts(reading, registry.plugins))]
    places = _Places(checked)
    located = sorted((places.line(each.path), kind, each.message) for kind, each in found)
    for line, kind, message in located:
        click.echo(f"{path}:{line}: {kind}: {message}" if line else f"{path}: {kind}: {message}", err=True)
    if located:
        errors = len(reading.problems)
        end = f"refused, {errors} error{'' if errors == 1 else 's'}" if errors else "accepted, with doubts"
        click.echo(f"{path}: {end}", err=True)
        return WRONG
    config = reading.config
    click.echo(f"{path}: fine; actions {', '.join(config.actions)}; plugins {', '.join(config.plugin_names)}")
    return FINE


class _Unreadable(ValueError):
    pass


def _doubts(reading: ConfigReading, plugins: Any) -> list[ConfigProblem]:
    """About what could be read; a text without any tier is not asked for the plugins that it lacks."""
    if reading.problems and not reading.config.tiers:
        return []
    return doubts(reading.config, plugins)


def _read(path: str) -> str:
    text = read_file(path)
    if text is None:
        raise _Unreadable(f"{path} cannot be read")
    return text


def _found_in(text: str, path: str) -> CheckedText:
    """The configuration in a ConfigMap's manifest, or the text itself where it is none."""
    try:
        documents = [_entries(node) for node in compose_all_yaml(text)]
    except BoundedYamlError:
        return CheckedText(text)  # the check of the text reports this error, with all others
    kinds = [getattr(entries.get("kind"), "value", "") for entries in documents]
    if not any("kind" in entries and "apiVersion" in entries for entries in documents):
        return CheckedText(text)
    if CONFIG_MAP not in kinds:
        raise _Unreadable(f"{path} is neither a configuration nor a ConfigMap with one")
    entries = _entries(documents[kinds.index(CONFIG_MAP)].get("data"))
    name = SCHEDULER_CONFIGMAP.partition(":")[2]
    found = [name] if name in entries else [each for each in entries if each.endswith(".conf")]
    if len(found) != 1 or not isinstance(entries[found[0]], yaml.ScalarNode):
        raise _Unreadable(f"{path}: the ConfigMap has no key {name}; it has {', '.join(entries) or 'none'}")
    value = entries[found[0]]
    above = value.start_mark.line + 1 if value.style == LITERAL_STYLE else None
    return CheckedText(str(value.value), above)


class _Places:
    """The lines of a configuration's keys and entries."""

    def __init__(self, checked: CheckedText) -> None:
        self._above = checked.lines_above
        try:
            nodes = compose_all_yaml(checked.text)
        except BoundedYamlError:
            nodes = []
        self._root = nodes[0] if nodes else None

    def line(self, path: tuple[str | int, ...]) -> int:
        """Of the last step of the path that is there; 0 where it is not known."""
        if self._root is None or self._above is None:
            return 0
        node, line = self._root, self._root.start_mark.line
        for step in path:
            below = _step(node, step)
            if below is None:
                break
            mark, node = below
            line = mark.line
        return int(line) + 1 + self._above


def _step(node: Any, step: str | int) -> tuple[Any, Any] | None:
    """The mark of a key or an entry, and its value."""
    if isinstance(node, yaml.MappingNode):
        return next(((key.start_mark, value) for key, value in node.value if key.value == step), None)
    if not isinstance(node, yaml.SequenceNode):
        return None
    if isinstance(step, int):
        return (node.value[step].start_mark, node.value[step]) if step < len(node.value) else None
    named = (each for each in node.value if getattr(_entries(each).get("name"), "value", None) == step)
    return next(((each.start_mark, each) for each in named), None)


def _entries(node: Any) -> dict[str, Any]:
    return {str(key.value): value for key, value in node.value} if isinstance(node, yaml.MappingNode) else {}
