"""Open and close a session: create its plugins, open them, determine which points they answer, and close them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from volcano.scheduler.core.snapshot import Snapshot
from volcano.scheduler.framework.config import SchedulerConfig
from volcano.scheduler.framework.plugin import Plugin
from volcano.scheduler.framework.session import Session
from volcano.scheduler.framework.topology import resolve_topology
from volcano.scheduler.model import Chance, Timer

RIVALS: Final = {"capacity": "proportion", "proportion": "capacity"}
"""Plugins that both compute what queues deserve: only the one configured first takes part."""


def open_session(
    snapshot: Snapshot,
    config: SchedulerConfig,
    *,
    known: Mapping[str, type[Plugin]],
    chance: Chance,
    timer: Timer,
) -> tuple[Session, list[Plugin]]:
    """A session with its plugins open, in configured order; unknown names are left out (the linter reports them)."""
    session = Session(snapshot, config, chance, timer)
    resolve_topology(session)
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


def close_plugins(session: Session, plugins: list[Plugin]) -> None:
    for plugin in plugins:
        started = session.timer.read()
        plugin.close(session)
        session.record.seconds[f"close {plugin.name}"] = session.timer.read() - started
