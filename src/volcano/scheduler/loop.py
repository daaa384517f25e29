"""One cycle in one screen: open a session on a snapshot, run the actions, check the plan, say what was decided."""

from __future__ import annotations

from collections.abc import Mapping

from volcano.scheduler.actions import ACTIONS, Action
from volcano.scheduler.core.snapshot import Snapshot
from volcano.scheduler.framework.config import SchedulerConfig
from volcano.scheduler.framework.decisions import Decisions, decisions_from
from volcano.scheduler.framework.opening import close_plugins, open_session
from volcano.scheduler.framework.plan_check import check_plan
from volcano.scheduler.framework.plugin import Plugin
from volcano.scheduler.model import Chance, StoppedWatch, Stopwatch
from volcano.scheduler.plugins import PLUGINS


def cycle(
    snapshot: Snapshot,
    config: SchedulerConfig,
    chance: Chance,
    stopwatch: Stopwatch | None = None,
    *,
    plugins: Mapping[str, type[Plugin]] = PLUGINS,
    actions: Mapping[str, Action] = ACTIONS,
) -> Decisions:
    """Decide who runs where. The same snapshot, configuration and chance give the same decisions.

    The snapshot is afterwards as it was before: what becomes of the decisions, its owner learns from the world.
    """
    watch = stopwatch or StoppedWatch()
    begun = watch.read()
    session, opened = open_session(snapshot, config, known=plugins, chance=chance, stopwatch=watch)
    seconds = session.record.seconds
    seconds["open"] = watch.read() - begun
    try:
        for name in config.actions:
            started = watch.read()
            actions[name](session)
            seconds[name] = watch.read() - started
        seconds["cycle"] = watch.read() - begun
        close_plugins(session, opened)
        return decisions_from(session, check_plan(session))
    finally:
        session.restore()
