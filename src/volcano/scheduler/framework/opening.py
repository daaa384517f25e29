"""Open and close a session: create its plugins, open them, determine which points they answer, and close them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from volcano.scheduler.core.snapshot import Snapshot
from volcano.scheduler.framework.config import PluginOption, SchedulerConfig
from volcano.scheduler.framework.kept_room import keep_room
from volcano.scheduler.framework.plugin import Plugin
from volcano.scheduler.framework.session import Session
from volcano.scheduler.framework.topology import resolve_topology
from volcano.scheduler.model import Chance, Timer

RIVALS: Final = {"capacity": "proportion", "proportion": "capacity"}
"""Plugins that both compute what queues deserve: only the one configured first takes part."""
RESERVATIONS: Final = "reservations"
"""The plugin that takes part while a Reservation has a window to come."""


def open_session(
    snapshot: Snapshot,
    config: SchedulerConfig,
    *,
    known: Mapping[str, type[Plugin]],
    chance: Chance,
    timer: Timer,
    only: str = "",
) -> tuple[Session, list[Plugin]]:
    """A session with its plugins open, in configured order; unknown names are left out (the linter reports them).

    `only`: the id of the one job that takes part.
    """
    session = Session(snapshot, config, chance, timer, only)
    resolve_topology(session)
    session.kept_room = keep_room(session)
    if session.kept_room is not None:
        session.config = config = _with_reservations(config)
    plugins: list[Plugin] = []
    by_name: dict[str, Plugin] = {}
    for tier in config.tiers:
        for option in tier:
            if option.name not in known or RIVALS.get(option.name) in by_name:
                continue
            started = timer.read()
            plugin = known[option.name](option)
            plugin.open(session)
            plugins.append(plugin)
            by_name[option.name] = plugin
            session.record.seconds[f"open {option.name}"] = timer.read() - started
    current = any(plugin.keeps_pods_current for plugin in plugins)
    session.enrol(by_name, keeps_pods_current=current)
    return session, plugins


def _with_reservations(config: SchedulerConfig) -> SchedulerConfig:
    """A Reservation counts whatever is configured; its holder need not wait in line behind jobs that it keeps out."""
    if RESERVATIONS in config.plugin_names:
        return config
    return replace(config, tiers=((PluginOption(RESERVATIONS),), *config.tiers))


def close_plugins(session: Session, plugins: list[Plugin]) -> None:
    for plugin in plugins:
        started = session.timer.read()
        plugin.close(session)
        session.record.seconds[f"close {plugin.name}"] = session.timer.read() - started
