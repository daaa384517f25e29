"""`volcano replay`: run the scheduling engine on recorded cycles and print what it decides, one JSON object a line."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from volcano.machinery.clock import SystemClock
from volcano.scheduler.actions import ACTIONS
from volcano.scheduler.core.assemble import put_usage, snapshot_from
from volcano.scheduler.core.snapshot import Snapshot
from volcano.scheduler.framework.config import InvalidConfig, SchedulerConfig, parse_config
from volcano.scheduler.framework.decisions import Decisions
from volcano.scheduler.framework.node_answers import NodeAnswers
from volcano.scheduler.framework.opening import open_session
from volcano.scheduler.framework.session import Session
from volcano.scheduler.loop import cycle
from volcano.scheduler.model import SeededChance, Status, Task
from volcano.scheduler.plugins import PLUGINS
from volcano.scheduler.trace import restore_state

MAX_SCENARIO_BYTES: Final = 2 * 2**30


class SystemStopwatch:
    def __init__(self) -> None:
        self._clock = SystemClock()

    def read(self) -> float:
        return self._clock.monotonic()


def replay(paths: Iterable[str], *, scores: bool, repeat: int, out: Callable[[str], None]) -> bool:
    """Every file `repeat` times; False when one of them could not be run."""
    fine = True
    for path in paths:
        for _ in range(repeat):
            try:
                outcome = {"file": path, **replay_scenario(_load(path), scores=scores)}
            except (OSError, ValueError, msgspec.MsgspecError, RecursionError) as error:
                outcome = {"file": path, "error": f"{type(error).__name__}: {error}"}
                fine = False
            out(msgspec.json.encode(outcome).decode())
    return fine


def _load(path: str) -> dict[str, Any]:
    file = Path(path)
    if file.stat().st_size > MAX_SCENARIO_BYTES:
        raise ValueError(f"{path} is larger than {MAX_SCENARIO_BYTES} bytes")
    scenario = msgspec.json.decode(file.read_bytes())
    if not isinstance(scenario, dict) or not isinstance(scenario.get("objects"), dict):
        raise ValueError("not a scenario: it has no objects")
    return scenario


def replay_scenario(scenario: Mapping[str, Any], *, scores: bool = False) -> dict[str, Any]:
    """One cycle on one scenario; the outcome as the format of recorded scenarios names it."""
    watch = SystemStopwatch()
    config = parse_config(scenario.get("schedulerConf", ""), known_actions=ACTIONS, as_recorded=True)
    begun = watch.read()
    snapshot = scenario_snapshot(scenario)
    built = watch.read() - begun
    seed = int(scenario.get("seed", 0))
    asked = _scores(snapshot, config, seed) if scores else {}
    decisions = cycle(snapshot, config, SeededChance(seed), watch)
    return {**_outcome(decisions, config), **asked, "seconds": _seconds(decisions, config, built)}


def scenario_snapshot(scenario: Mapping[str, Any]) -> Snapshot:
    now = scenario.get("now")
    snapshot = snapshot_from(
        scenario["objects"],
        extra=scenario.get("extra") or {},
        now=datetime.fromisoformat(now) if isinstance(now, str) else None,
    )
    state = scenario.get("state") or {}
    put_usage(snapshot, state.get("usage") or {})
    restore_state(snapshot, state)
    return snapshot


def _outcome(decisions: Decisions, config: SchedulerConfig) -> dict[str, Any]:
    return {
        "binds": {bind.task: bind.node for bind in decisions.binds},
        "evicts": [eviction.task for eviction in decisions.evictions],
        "pipelined": dict(decisions.pipelined),
        "podGroupPhases": {job: status.phase for job, status in decisions.groups.items()},
        "taskStatusNums": decisions.status_counts,
        "why": {job: str(why) for job, why in decisions.why.items()},
        "setAside": dict(decisions.set_aside),
        "dropped": dict(decisions.dropped),
    }


def _seconds(decisions: Decisions, config: SchedulerConfig, built: float) -> dict[str, float]:
    measured = decisions.seconds
    chosen = ("open", *config.actions, "cycle")
    return {"snapshot": built, **{name: measured[name] for name in chosen if name in measured}}


# -- scores -----------------------------------------------------------------------------------------------------------
def _scores(snapshot: Snapshot, config: SchedulerConfig, seed: int) -> dict[str, Any]:
    """The plugins' answers about every node for every pending task, right after the session opened."""
    session, _ = open_session(snapshot, config, known=PLUGINS, chance=SeededChance(seed), timer=SystemStopwatch())
    session.nodes = NodeAnswers(session.table, session.ask)  # the plugins' answers, without the shard's filter
    fits, node_order, batch_order = {}, {}, {}
    for job in session.jobs.values():
        for task in job.by_status[Status.PENDING].values():
            fits[task.key], node_order[task.key], batch_order[task.key] = _scores_of(session, task)
    session.restore()
    return {"fits": fits, "nodeOrder": node_order, "batchNodeOrder": batch_order}


def _scores_of(session: Session, task: Task) -> tuple[list[str], dict[str, float], dict[str, float]]:
    names = [node.name for node in session.table.nodes]
    refused = session.ask.pre_filter(task) is not None
    passing = session.nodes.filtered(task).ok
    fits = [] if refused else [name for name, passes in zip(names, passing, strict=True) if passes]
    scored = session.nodes.scored(task)
    all_nodes = passing | True
    node_order = dict(zip(names, scored.node.tolist(), strict=True))
    return fits, node_order, dict(zip(names, scored.batch(all_nodes, task).tolist(), strict=True))


@click.command("replay")
@click.option("--scores", is_flag=True, help="Also print which nodes fit each pending task, and their scores.")
@click.option("--repeat", default=1, show_default=True, type=click.IntRange(1, 1000), help="Run every file this often.")
@click.argument("files", nargs=-1, required=True, type=click.Path())
def replay_command(scores: bool, repeat: int, files: tuple[str, ...]) -> None:
    """Run the scheduling engine on recorded cycles and print its decisions, one JSON object a line.

    \b
    Example:
      volcano replay --scores cluster.json | jq .binds
    """
    if not replay(files, scores=scores, repeat=repeat, out=click.echo):
        sys.exit(1)


__all__ = ["InvalidConfig", "replay", "replay_command", "replay_scenario", "scenario_snapshot"]

if __name__ == "__main__":
    replay_command()
