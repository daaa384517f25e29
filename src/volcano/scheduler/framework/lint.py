"""The linter of configurations: unknown names, unused arguments, plugins and actions that exclude each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from volcano.api.nearest_words import did_you_mean
from volcano.scheduler.framework.config import ConfigProblem, PluginOption, SchedulerConfig
from volcano.scheduler.framework.opening import RIVALS
from volcano.scheduler.framework.plugin import Plugin
from volcano.scheduler.framework.points import UNASKED, UNASKED_SWITCHES

ACTION_ARGUMENTS: Final[Mapping[str, frozenset[str]]] = {
    "enqueue": frozenset(),
    "allocate": frozenset({"predicateErrorCacheEnable"}),
    "backfill": frozenset({"predicateErrorCacheEnable"}),
    "reclaim": frozenset({"predicateErrorCacheEnable"}),
    "preempt": frozenset(
        {
            "predicateErrorCacheEnable",
            "enableTopologyAwarePreemption",
            "topologyAwarePreemptWorkerNum",
            "minCandidateNodesPercentage",
            "minCandidateNodesAbsolute",
            "maxCandidateNodesAbsolute",
        }
    ),
    "gangpreempt": frozenset({"maxDomains", "allowWholeBundle"}),
    "gangreclaim": frozenset({"maxDomains", "allowWholeBundle"}),
    "shuffle": frozenset(),
}
EVICTING: Final = (("preempt", "gangpreempt"), ("reclaim", "gangreclaim"))


def lint(config: SchedulerConfig, known: Mapping[str, type[Plugin]]) -> list[str]:
    """One sentence for each thing that will not work as written; empty when all is well."""
    return [doubt.message for doubt in doubts(config, known)]


def doubts(config: SchedulerConfig, known: Mapping[str, type[Plugin]]) -> list[ConfigProblem]:
    """The same, each with the place it is about."""
    found = [
        problem
        for tier, options in enumerate(config.tiers)
        for option in options
        for problem in _of_plugin(option, tier, known)
    ]
    return [*found, *_of_actions(config), *_together(config)]


def _of_plugin(option: PluginOption, tier: int, known: Mapping[str, type[Plugin]]) -> list[ConfigProblem]:
    plugin, path, where = known.get(option.name), ("tiers", tier, "plugins", option.name), f"tier {tier + 1}"
    if plugin is None:
        near = did_you_mean(option.name, known)
        return [ConfigProblem(path, f"{where}: no plugin is called {option.name}; it is left out{near}")]
    found = [
        ConfigProblem(
            (*path, switch),
            f"{where}: {switch} of plugin {option.name} has no effect: Volcano's {UNASKED_SWITCHES[switch]}"
            f" does not exist here ({UNASKED[UNASKED_SWITCHES[switch]]})",
        )
        for switch in sorted(UNASKED_SWITCHES.keys() & option.switches.keys())
    ]
    names, prefixes = plugin.argument_names, tuple(plugin.argument_prefixes)
    if names is None:
        return found
    unknown = [name for name in option.arguments if name not in names and not name.startswith(prefixes or ("\0",))]
    return found + [
        ConfigProblem(
            (*path, "arguments", name),
            f"{where}: plugin {option.name} knows no argument {name}{did_you_mean(name, names)}",
        )
        for name in unknown
    ]


def _of_actions(config: SchedulerConfig) -> list[ConfigProblem]:
    found = []
    for action, arguments in config.configurations.items():
        path = ("configurations", action)
        if action not in config.actions:
            found.append(ConfigProblem(path, f"configurations: {action} is not among the actions"))
        known = ACTION_ARGUMENTS.get(action, frozenset(arguments))
        found += [
            ConfigProblem(
                (*path, "arguments", name),
                f"configurations: action {action} knows no argument {name}{did_you_mean(name, known)}",
            )
            for name in sorted(set(arguments) - known)
        ]
    return found


def _together(config: SchedulerConfig) -> list[ConfigProblem]:
    tiers, actions = ("tiers",), ("actions",)
    names, found = config.plugin_names, []
    for name in dict.fromkeys(names):
        if names.count(name) > 1:
            times = f"plugin {name} is configured {names.count(name)} times; the last arguments hold"
            found.append(ConfigProblem(tiers, times))
        rival = RIVALS.get(name)
        if rival in names and names.index(name) > names.index(rival):
            both = f"{rival} and {name} cannot both say what queues deserve; {name} is left out"
            found.append(ConfigProblem(tiers, both))
    for single, whole in EVICTING:
        if single in config.actions and whole in config.actions:
            both = f"actions {single} and {whole} would evict for the same jobs; use one of them"
            found.append(ConfigProblem(actions, both))
    if [action for action in config.actions if action in ("enqueue", "allocate")] == ["allocate", "enqueue"]:
        late = "action enqueue comes after allocate: what it lets in waits for the next cycle"
        found.append(ConfigProblem(actions, late))
    if "gang" not in names:
        found.append(ConfigProblem(tiers, "without plugin gang a job may be started in part"))
    if "predicates" not in names:
        missing = "without plugin predicates selectors, taints, affinity and volumes are not looked at"
        found.append(ConfigProblem(tiers, missing))
    return found
