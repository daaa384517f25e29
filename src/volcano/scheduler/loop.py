"""One cycle in one screen: open a session on a snapshot, run the actions, check the plan, return the decisions."""

from __future__ import annotations

from collections.abc import Mapping

from volcano.scheduler.actions import ACTIONS, Action
from volcano.scheduler.core.snapshot import Snapshot
from volcano.scheduler.framework.config import SchedulerConfig
from volcano.scheduler.framework.decisions import Decisions, decisions_from
from volcano.scheduler.framework.opening import close_plugins, open_session
from volcano.scheduler.framework.plan_check import check_plan
from volcano.scheduler.framework.plugin import Plugin
from volcano.scheduler.model import Chance, StoppedTimer, Timer
from volcano.scheduler.plugins import PLUGINS


def cycle(
    snapshot: Snapshot,
    config: SchedulerConfig,
    chance: Chance,
    timer: Timer | None = None,
    *,
    plugins: Mapping[str, type[Plugin]] = PLUGINS,
    actions: Mapping[str, Action] = ACTIONS,
    messages: bool = True,
) -> Decisions:
    """Decide who runs where. The same snapshot, configuration and chance give the same decisions.

    Without `messages`, the texts for pods and PodGroups that wait are left out: a simulation has no reader for them.
    Afterwards the snapshot is as it was before; what becomes of the decisions is taken in as changes of objects.
    """
    watch = timer or StoppedTimer()
    begun = watch.read()
    session, opened = open_session(snapshot, config, known=plugins, chance=chance, timer=watch)
    seconds = session.record.seconds
    seconds["open"] = watch.read() - begun
    try:
        for name in config.actions:
            started = watch.read()
            actions[name](session)
            seconds[name] = watch.read() - started
        seconds["cycle"] = watch.read() - begun
        close_plugins(session, opened)
        return decisions_from(session, check_plan(session), messages=messages)
    finally:
        session.restore()
