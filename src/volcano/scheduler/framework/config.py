"""volcano-scheduler.conf → SchedulerConfig. The format's irregular spellings and defaults end here."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from volcano.api.bounded_yaml import BoundedYamlError, load_yaml
from volcano.scheduler.framework.arguments import Arguments
from volcano.scheduler.framework.points import POINTS, UNASKED_SWITCHES

HIERARCHY: Final = "enableHierarchy"
OFF_BY_DEFAULT: Final = frozenset({HIERARCHY, "enabledClusterOrder"})
SWITCHES: Final = frozenset(
    {HIERARCHY, *UNASKED_SWITCHES, *(switch for point in POINTS.values() for switch in point.switches)}
)
MAX_CONFIG_CHARACTERS: Final = 1024 * 1024

DEFAULT_CONFIG: Final = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: overcommit}, {name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
"""


class InvalidConfig(ValueError):
    """The text is no scheduler configuration; the message gives the reason."""


class UnknownAction(InvalidConfig):
    def __init__(self, name: str) -> None:
        super().__init__(f"failed to find Action {name}")
        self.name = name


@dataclass(frozen=True, slots=True)
class PluginOption:
    """One plugin in a tier: its arguments, and for each switch whether it is on."""

    name: str
    arguments: Arguments = field(default_factory=Arguments)
    switches: Mapping[str, bool] = field(default_factory=dict)

    def is_on(self, switch: str) -> bool:
        return self.switches.get(switch, switch not in OFF_BY_DEFAULT)

    @property
    def hierarchy(self) -> bool:
        return self.is_on(HIERARCHY)


@dataclass(frozen=True, slots=True)
class SchedulerConfig:
    actions: tuple[str, ...] = ()
    tiers: tuple[tuple[PluginOption, ...], ...] = ()
    configurations: Mapping[str, Arguments] = field(default_factory=dict)
    metrics: Mapping[str, str] = field(default_factory=dict)

    def arguments_of(self, action: str) -> Arguments:
        """The first entry of that name; an action without one has its defaults."""
        return self.configurations.get(action, Arguments())

    @property
    def plugin_names(self) -> tuple[str, ...]:
        return tuple(option.name for tier in self.tiers for option in tier)


def parse_config(text: str, *, known_actions: Collection[str], as_recorded: bool = False) -> SchedulerConfig:
    """The whole format of section 1; unknown keys are ignored, unknown actions are an error.

    A configuration `as_recorded` may also have no actions, or plugins side by side that a service would not start with.
    """
    if len(text) > MAX_CONFIG_CHARACTERS:
        raise InvalidConfig(f"the configuration is longer than {MAX_CONFIG_CHARACTERS} characters")
    try:
        document = load_yaml(text)
    except BoundedYamlError as error:
        raise InvalidConfig(f"not YAML: {error}") from error
    if document is None and not as_recorded:
        raise InvalidConfig("the configuration is empty")
    if not isinstance(document, dict):
        raise InvalidConfig("the configuration is not a map")
    tiers = tuple(_tier(tier, place) for place, tier in enumerate(_list(document, "tiers")))
    if not as_recorded:
        _refuse_contradictions(tiers)
    return SchedulerConfig(
        _actions(document.get("actions"), known_actions, as_recorded),
        tiers,
        _configurations(_list(document, "configurations")),
        {str(key): str(value) for key, value in _map(document, "metrics").items()},
    )


def default_config(known_actions: Collection[str]) -> SchedulerConfig:
    return parse_config(DEFAULT_CONFIG, known_actions=known_actions)


def _actions(stated: Any, known: Collection[str], allow_none: bool) -> tuple[str, ...]:
    text = stated if isinstance(stated, str) else ""
    if allow_none and not text.strip():
        return ()
    names = tuple(name.strip() for name in text.split(","))
    for name in names:
        if name not in known:
            raise UnknownAction(name)
    return names


def _tier(tier: Any, place: int) -> tuple[PluginOption, ...]:
    if not isinstance(tier, dict):
        raise InvalidConfig(f"tier {place + 1} is not a map")
    return tuple(_option(entry) for entry in _list(tier, "plugins"))


def _refuse_contradictions(tiers: tuple[tuple[PluginOption, ...], ...]) -> None:
    for options in tiers:
        names = {option.name for option in options}
        if "proportion" in names and any(option.name == "drf" and option.hierarchy for option in options):
            raise InvalidConfig("proportion and drf with hierarchy enabled conflicts")


def _option(entry: Any) -> PluginOption:
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        raise InvalidConfig(f"a plugin needs a name: {entry!r}")
    switches: dict[str, bool] = {}
    for key in SWITCHES & entry.keys():
        if entry[key] is None:
            continue
        if not isinstance(entry[key], bool):
            raise InvalidConfig(f"{key} of plugin {entry['name']} is not a boolean: {entry[key]!r}")
        switches[key] = entry[key]
    return PluginOption(entry["name"], Arguments(_map(entry, "arguments")), switches)


def _configurations(entries: list[Any]) -> dict[str, Arguments]:
    found: dict[str, Arguments] = {}
    for entry in entries:
        if isinstance(entry, dict) and isinstance(entry.get("name"), str):
            found.setdefault(entry["name"], Arguments(_map(entry, "arguments")))
    return found


def _list(document: Mapping[str, Any], key: str) -> list[Any]:
    value = document.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise InvalidConfig(f"{key} is not a list")
    return value


def _map(document: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = document.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidConfig(f"{key} is not a map")
    return {str(name): item for name, item in value.items()}
