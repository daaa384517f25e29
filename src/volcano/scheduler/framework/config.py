"""volcano-scheduler.conf → SchedulerConfig. The format's irregular spellings and defaults end here."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

from volcano.api.bounded_yaml import BoundedYamlError, load_yaml
from volcano.api.nearest_words import did_you_mean
from volcano.scheduler.framework.arguments import Arguments
from volcano.scheduler.framework.points import POINTS, UNASKED_SWITCHES

HIERARCHY: Final = "enableHierarchy"
OFF_BY_DEFAULT: Final = frozenset({HIERARCHY, "enabledClusterOrder"})
SWITCHES: Final = frozenset(
    {HIERARCHY, *UNASKED_SWITCHES, *(switch for point in POINTS.values() for switch in point.switches)}
)
TOP_LEVEL_KEYS: Final = ("actions", "tiers", "configurations", "metrics")
PLUGIN_KEYS: Final = frozenset({"name", "arguments", *SWITCHES})
MAX_CONFIG_CHARACTERS: Final = 1024 * 1024

DEFAULT_CONFIG: Final = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: overcommit}, {name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
"""


ConfigPath: TypeAlias = tuple[str | int, ...]
"""Keys, and indexes or names of entries."""


class ConfigProblem(NamedTuple):
    """Something that is wrong with a configuration, and where."""

    path: ConfigPath
    message: str


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
    reading = ConfigReading(text, known_actions, as_recorded=as_recorded)
    if len(reading.problems) == 1 and reading.unknown_actions:
        raise UnknownAction(reading.unknown_actions[0])
    if reading.problems:
        raise InvalidConfig("; ".join(problem.message for problem in reading.problems))
    return reading.config


class ConfigReading:
    """A text as a configuration as far as it can be read, and everything that is wrong with it."""

    def __init__(self, text: str, known_actions: Collection[str], *, as_recorded: bool = False) -> None:
        self.problems: list[ConfigProblem] = []
        self.ignored: list[ConfigProblem] = []
        """Keys that nothing reads."""
        self.unknown_actions: list[str] = []
        self._known_actions, self._as_recorded = known_actions, as_recorded
        self.config = self._read(self._document(text))

    def _document(self, text: str) -> dict[str, Any]:
        if len(text) > MAX_CONFIG_CHARACTERS:
            self._wrong((), f"the configuration is longer than {MAX_CONFIG_CHARACTERS} characters")
            return {}
        try:
            document = load_yaml(text)
        except BoundedYamlError as error:
            self._wrong((), f"not YAML: {error}")
            return {}
        if not isinstance(document, dict):
            is_empty = document is None and not self._as_recorded
            self._wrong((), "the configuration is empty" if is_empty else "the configuration is not a map")
            return {}
        return document

    def _read(self, document: dict[str, Any]) -> SchedulerConfig:
        if self.problems:
            return SchedulerConfig()
        self._note_unknown((), document, TOP_LEVEL_KEYS)
        tiers = tuple(self._tier(tier, place) for place, tier in enumerate(self._list((), document, "tiers")))
        if not self._as_recorded:
            self._refuse_contradictions(tiers)
        return SchedulerConfig(
            self._actions(document.get("actions")),
            tiers,
            self._configurations(self._list((), document, "configurations")),
            {str(key): str(value) for key, value in self._map((), document, "metrics").items()},
        )

    def _actions(self, stated: Any) -> tuple[str, ...]:
        text = stated if isinstance(stated, str) else ""
        if self._as_recorded and not text.strip():
            return ()
        names = tuple(name.strip() for name in text.split(","))
        self.unknown_actions = [name for name in names if name not in self._known_actions]
        for name in self.unknown_actions:
            self._wrong(("actions",), f"failed to find Action {name}{did_you_mean(name, self._known_actions)}")
        return names

    def _tier(self, tier: Any, place: int) -> tuple[PluginOption, ...]:
        path: ConfigPath = ("tiers", place)
        if not isinstance(tier, dict):
            self._wrong(path, f"tier {place + 1} is not a map")
            return ()
        self._note_unknown(path, tier, ("plugins",))
        entries = enumerate(self._list(path, tier, "plugins"))
        options = [self._option(entry, (*path, "plugins", number)) for number, entry in entries]
        return tuple(option for option in options if option is not None)

    def _refuse_contradictions(self, tiers: tuple[tuple[PluginOption, ...], ...]) -> None:
        for place, options in enumerate(tiers):
            names = {option.name for option in options}
            if "proportion" in names and any(option.name == "drf" and option.hierarchy for option in options):
                self._wrong(("tiers", place), "proportion and drf with hierarchy enabled conflicts")

    def _option(self, entry: Any, path: ConfigPath) -> PluginOption | None:
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            self._wrong(path, f"a plugin needs a name: {entry!r}")
            return None
        self._note_unknown(path, entry, PLUGIN_KEYS, of=f" of plugin {entry['name']}")
        switches: dict[str, bool] = {}
        for key in sorted(SWITCHES & entry.keys()):
            if entry[key] is None:
                continue
            if not isinstance(entry[key], bool):
                self._wrong((*path, key), f"{key} of plugin {entry['name']} is not a boolean: {entry[key]!r}")
                continue
            switches[key] = entry[key]
        return PluginOption(entry["name"], Arguments(self._map(path, entry, "arguments")), switches)

    def _configurations(self, entries: list[Any]) -> dict[str, Arguments]:
        found: dict[str, Arguments] = {}
        for place, entry in enumerate(entries):
            if isinstance(entry, dict) and isinstance(entry.get("name"), str):
                arguments = Arguments(self._map(("configurations", place), entry, "arguments"))
                found.setdefault(entry["name"], arguments)
        return found

    def _list(self, path: ConfigPath, document: Mapping[str, Any], key: str) -> list[Any]:
        value = document.get(key)
        if value is not None and not isinstance(value, list):
            self._wrong((*path, key), f"{key} is not a list")
        return value if isinstance(value, list) else []

    def _map(self, path: ConfigPath, document: Mapping[str, Any], key: str) -> dict[str, Any]:
        value = document.get(key)
        if value is not None and not isinstance(value, dict):
            self._wrong((*path, key), f"{key} is not a map")
        return {str(name): item for name, item in value.items()} if isinstance(value, dict) else {}

    def _wrong(self, path: ConfigPath, message: str) -> None:
        self.problems.append(ConfigProblem(path, message))

    def _note_unknown(
        self, path: ConfigPath, document: Mapping[Any, Any], known: Collection[str], of: str = ""
    ) -> None:
        for key in document:
            if key not in known:
                near = did_you_mean(str(key), known)
                self.ignored.append(ConfigProblem((*path, str(key)), f"the key {key}{of} is unknown and ignored{near}"))


def default_config(known_actions: Collection[str]) -> SchedulerConfig:
    return parse_config(DEFAULT_CONFIG, known_actions=known_actions)
