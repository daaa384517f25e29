"""What is doubtful about a configuration: unknown plugins and arguments, and what cannot work together."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from volcano.scheduler.framework.config import PluginOption, SchedulerConfig
from volcano.scheduler.framework.plugin import Plugin

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
RIVALS: Final = (("proportion", "capacity"), ("preempt", "gangpreempt"), ("reclaim", "gangreclaim"))


def lint(config: SchedulerConfig, plugins: Mapping[str, type[Plugin]], actions: Collection[str]) -> list[str]:
    """One sentence per doubt; nothing when there is none."""
    return [*_plugins(config, plugins), *_actions(config, actions), *_combinations(config)]


def _plugins(config: SchedulerConfig, plugins: Mapping[str, type[Plugin]]) -> Iterator[str]:
    seen: set[str] = set()
    for tier in config.tiers:
        for option in tier:
            if option.name in seen:
                yield f"plugin {option.name} is configured twice; the later one replaces the earlier"
            seen.add(option.name)
            plugin = plugins.get(option.name)
            if plugin is None:
                yield f"there is no plugin {option.name}; it is left out"
            else:
                yield from _arguments(option, plugin)


def _arguments(option: PluginOption, plugin: type[Plugin]) -> Iterator[str]:
    if plugin.argument_names is None:
        return
    for name in option.arguments:
        if name not in plugin.argument_names and not name.startswith(tuple(plugin.argument_prefixes) or ("\0",)):
            yield f"plugin {option.name} has no argument {name}"


def _actions(config: SchedulerConfig, actions: Collection[str]) -> Iterator[str]:
    for action, arguments in config.configurations.items():
        if action not in actions:
            yield f"configurations name an action {action}, which there is not"
        for name in arguments:
            if name not in ACTION_ARGUMENTS.get(action, frozenset({name})):
                yield f"action {action} has no argument {name}"


def _combinations(config: SchedulerConfig) -> Iterator[str]:
    named = {*config.plugin_names, *config.actions}
    for one, other in RIVALS:
        if one in named and other in named:
            yield f"{one} and {other} contradict each other: configure one of them"
    if "gang" not in named:
        yield "without the plugin gang, jobs are not placed as a whole"
    if "predicates" not in named:
        yield "without the plugin predicates, node selectors, taints and ports are not looked at"
    if "enqueue" in config.actions and "allocate" not in config.actions:
        yield "jobs are admitted (enqueue) but nothing places them (allocate)"
    if "usage" in config.plugin_names and not config.metrics.get("type"):
        yield "plugin usage has no source of measurements: the section metrics names no type"
