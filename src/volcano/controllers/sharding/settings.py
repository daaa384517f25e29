"""How nodes are divided among schedulers: from the ConfigMap's YAML, or from the flags."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from volcano.api.bounded_yaml import BoundedYamlError, load_yaml
from volcano.api.durations import DurationError, parse_duration

CONFIG_KEY: Final = "sharding.yaml"
DEFAULTS: Final = ("volcano:volcano:0.0:0.6:false:2:100", "agent-scheduler:agent:0.7:1.0:true:2:100")
POLICIES: Final = ("allocation-rate", "warmup", "node-limit")


class SettingsError(ValueError):
    """The configuration cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class Policy:
    """One rule by which a scheduler's nodes are chosen."""

    name: str
    weight: int = 1
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SchedulerShare:
    """A scheduler and its rules."""

    name: str
    policies: tuple[Policy, ...]


@dataclass(frozen=True, slots=True)
class ShardingSettings:
    """All schedulers in the order in which they choose, and how often."""

    schedulers: tuple[SchedulerShare, ...]
    period: timedelta = timedelta(seconds=60)
    follows_nodes: bool = True


def from_flags(
    texts: Iterable[str] = DEFAULTS, *, period: timedelta = timedelta(seconds=60), follows_nodes: bool = True
) -> ShardingSettings:
    """`name:type:minUtil:maxUtil:preferWarmup:minNodes:maxNodes`, several of them."""
    schedulers = []
    for text in texts:
        parts = text.split(":")
        if len(parts) != 7:
            raise SettingsError(f"{text!r} has {len(parts)} parts, not 7")
        name, _, low, high, warm, fewest, most = parts
        legacy = {
            "name": name,
            "cpuUtilizationMin": float(low),
            "cpuUtilizationMax": float(high),
            "preferWarmupNodes": warm == "true",
            "minNodes": int(fewest),
            "maxNodes": int(most),
        }
        schedulers.append(_scheduler(legacy))
    return ShardingSettings(tuple(schedulers), period, follows_nodes)


def parse_settings(text: str, base: ShardingSettings) -> ShardingSettings:
    """The YAML of the ConfigMap; SettingsError if it cannot be used."""
    try:
        document = load_yaml(text)
    except BoundedYamlError as error:
        raise SettingsError(f"not YAML: {error}") from error
    configs = document.get("schedulerConfigs") if isinstance(document, dict) else None
    if not isinstance(configs, list) or not configs:
        raise SettingsError("schedulerConfigs must list at least one scheduler")
    period, follows = base.period, document.get("enableNodeEventTrigger", base.follows_nodes)
    if "shardSyncPeriod" in document:
        try:
            period = parse_duration(str(document["shardSyncPeriod"]))
        except DurationError as error:
            raise SettingsError(f"shardSyncPeriod: {error}") from error
    if period <= timedelta(0):
        raise SettingsError("shardSyncPeriod must be more than nothing")
    return ShardingSettings(tuple(_scheduler(config) for config in configs), period, bool(follows))


def _scheduler(config: Any) -> SchedulerShare:
    if not isinstance(config, dict) or not config.get("name"):
        raise SettingsError("a scheduler has no name")
    name = str(config["name"])
    fewest, most = int(config.get("minNodes") or 0), int(config.get("maxNodes") or 0)
    if most and fewest > most:
        raise SettingsError(f"{name}: minNodes is more than maxNodes")
    policies = [_policy(name, each) for each in config.get("policies") or []]
    if not policies:
        low, high = float(config.get("cpuUtilizationMin") or 0), float(config.get("cpuUtilizationMax") or 0)
        if not 0 <= low <= 1 or not 0 <= high <= 1:
            raise SettingsError(f"{name}: utilisations are between 0 and 1")
        policies = [Policy("allocation-rate", arguments={"minCPUUtil": low, "maxCPUUtil": high})]
        if config.get("preferWarmupNodes"):
            policies.append(Policy("warmup"))
    if fewest or most:
        policies.append(Policy("node-limit", arguments={"minNodes": fewest, "maxNodes": most}))
    return SchedulerShare(name, tuple(policies))


def _policy(scheduler: str, config: Any) -> Policy:
    if not isinstance(config, dict) or config.get("name") not in POLICIES:
        raise SettingsError(f"{scheduler}: there is no policy {config!r}; known: {', '.join(POLICIES)}")
    name, arguments = str(config["name"]), config.get("arguments") or {}
    weight = int(config.get("weight") or 0)
    if weight < 0:
        raise SettingsError(f"{scheduler}: the weight of {name} is negative")
    if name != "node-limit" and {"minNodes", "maxNodes"} & set(arguments):
        raise SettingsError(f"{scheduler}: minNodes and maxNodes belong to node-limit, not to {name}")
    return Policy(name, weight or 1, arguments)
