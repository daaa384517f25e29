"""Open and close a session: make the plugins anew, let them look, settle who answers, and let them conclude."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from volcano.scheduler.core.snapshot import Snapshot
from volcano.scheduler.framework.config import SchedulerConfig
from volcano.scheduler.framework.plugin import Plugin
from volcano.scheduler.framework.session import Session
from volcano.scheduler.framework.topology import settle_topology
from volcano.scheduler.model import Chance, Stopwatch

RIVALS: Final = {"capacity": "proportion", "proportion": "capacity"}
"""Two accounts of what queues deserve cannot both hold: the one configured first takes part."""


def open_session(
    snapshot: Snapshot,
    config: SchedulerConfig,
    *,
    known: Mapping[str, type[Plugin]],
    chance: Chance,
    stopwatch: Stopwatch,
) -> tuple[Session, list[Plugin]]:
    """A session with its plugins open, in configured order; names nobody knows are left out (the linter tells)."""
    session = Session(snapshot, config, chance, stopwatch)
    settle_topology(session)
    plugins: list[Plugin] = []
    by_name: dict[str, Plugin] = {}
    for tier in config.tiers:
        for option in tier:
            if option.name not in known or RIVALS.get(option.name) in by_name:
                continue
            started = stopwatch.read()
            plugin = known[option.name](option)
            plugin.open(session)
            plugins.append(plugin)
            by_name[option.name] = plugin
            session.record.seconds[f"open {option.name}"] = stopwatch.read() - started
    current = any(plugin.keeps_pods_current for plugin in plugins)
    session.enrol(by_name, keeps_pods_current=current)
    return session, plugins


def close_plugins(session: Session, plugins: list[Plugin]) -> None:
    for plugin in plugins:
        started = session.stopwatch.read()
        plugin.close(session)
        session.record.seconds[f"close {plugin.name}"] = session.stopwatch.read() - started
