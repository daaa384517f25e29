"""The linter of configurations: unknown names, unused arguments, plugins and actions that exclude each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from volcano.scheduler.framework.config import PluginOption, SchedulerConfig
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
    found = [
        sentence
        for place, tier in enumerate(config.tiers, start=1)
        for option in tier
        for sentence in _of_plugin(option, place, known)
    ]
    return [*found, *_of_actions(config), *_together(config)]


def _of_plugin(option: PluginOption, tier: int, known: Mapping[str, type[Plugin]]) -> list[str]:
    plugin = known.get(option.name)
    if plugin is None:
        return [f"tier {tier}: no plugin is called {option.name}; it is left out"]
    found = [
        f"tier {tier}: {switch} of plugin {option.name} has no effect: Volcano's {UNASKED_SWITCHES[switch]}"
        f" does not exist here ({UNASKED[UNASKED_SWITCHES[switch]]})"
        for switch in sorted(UNASKED_SWITCHES.keys() & option.switches.keys())
    ]
    if plugin.argument_names is None:
        return found
    return found + [
        f"tier {tier}: plugin {option.name} knows no argument {name}"
        for name in option.arguments
        if name not in plugin.argument_names and not name.startswith(tuple(plugin.argument_prefixes) or ("\0",))
    ]


def _of_actions(config: SchedulerConfig) -> list[str]:
    found = []
    for action, arguments in config.configurations.items():
        if action not in config.actions:
            found.append(f"configurations: {action} is not among the actions")
        unknown = sorted(set(arguments) - ACTION_ARGUMENTS.get(action, frozenset(arguments)))
        found += [f"configurations: action {action} knows no argument {name}" for name in unknown]
    return found


def _together(config: SchedulerConfig) -> list[str]:
    names, found = config.plugin_names, []
    for name in dict.fromkeys(names):
        if names.count(name) > 1:
            found.append(f"plugin {name} is configured {names.count(name)} times; the last arguments hold")
        rival = RIVALS.get(name)
        if rival in names and names.index(name) > names.index(rival):
            found.append(f"{rival} and {name} cannot both say what queues deserve; {name} is left out")
    for single, whole in EVICTING:
        if single in config.actions and whole in config.actions:
            found.append(f"actions {single} and {whole} would evict for the same jobs; use one of them")
    actions = [action for action in config.actions if action in ("enqueue", "allocate")]
    if actions == ["allocate", "enqueue"]:
        found.append("action enqueue comes after allocate: what it lets in waits for the next cycle")
    if "gang" not in names:
        found.append("without plugin gang a job may be started in part")
    if "predicates" not in names:
        found.append("without plugin predicates selectors, taints, affinity and volumes are not looked at")
    return found
