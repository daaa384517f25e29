"""What the controller writes down in `status.controlledResources`, so that a restarted one knows what was begun.

plugin-<name> and volume-pvc-<claim> are Volcano's own. Ours: `restart` is what a Restarting job still has to end,
`command` is the Command that is being or was last carried out, `evicted-<pod>` is when a pod was lost whose policy
waits. Each entry is written together with the status change it belongs to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from volcano.api.batch import Action

RESTART: Final = "restart"
COMMAND: Final = "command"
EVICTED: Final = "evicted-"
PLUGIN: Final = "plugin-"
CLAIM: Final = "volume-pvc-"

EVERYTHING: Final = "job"  # restart all pods
UNFINISHED: Final = "unfinished"  # restart all pods but those that finished
ACCEPTED: Final = "accepted"
DONE: Final = "done"


@dataclass(frozen=True, slots=True)
class Target:
    """What a targeted restart ends: a task, a partition of it, or a pod."""

    action: Action
    task: str = ""
    pod: str = ""
    partition: str = ""

    def __str__(self) -> str:
        match self.action:
            case Action.RESTART_POD:
                return f"pod/{self.pod}"
            case Action.RESTART_PARTITION:
                return f"partition/{self.task}/{self.partition}"
            case _:
                return f"task/{self.task}"

    def covers(self, *, task: str, pod: str, partition: str) -> bool:
        match self.action:
            case Action.RESTART_POD:
                return pod == self.pod
            case Action.RESTART_PARTITION:
                return task == self.task and partition == self.partition
            case _:
                return task == self.task

    @classmethod
    def parse(cls, text: str) -> Target | None:
        match text.split("/"):
            case ["pod", pod]:
                return cls(Action.RESTART_POD, pod=pod)
            case ["task", task]:
                return cls(Action.RESTART_TASK, task=task)
            case ["partition", task, partition]:
                return cls(Action.RESTART_PARTITION, task=task, partition=partition)
        return None


@dataclass(frozen=True, slots=True)
class KnownCommand:
    """A Command of which the job has taken notice."""

    uid: str
    action: str = ""
    is_done: bool = False


class Records:
    """The entries, read; the methods that change something answer with new entries."""

    def __init__(self, entries: Mapping[str, str]) -> None:
        self.entries = dict(entries)

    # -- reading ------------------------------------------------------------------------------------------------
    @property
    def plugins(self) -> frozenset[str]:
        return frozenset(key.removeprefix(PLUGIN) for key in self.entries if key.startswith(PLUGIN))

    @property
    def restart(self) -> str:
        return self.entries.get(RESTART, "")

    @property
    def restarts_all(self) -> bool:
        return self.restart in (EVERYTHING, UNFINISHED)

    @property
    def targets(self) -> tuple[Target, ...]:
        parsed = (Target.parse(part) for part in self.restart.split(",") if part)
        return tuple(target for target in parsed if target is not None)

    @property
    def command(self) -> KnownCommand | None:
        match self.entries.get(COMMAND, "").split("/"):
            case [state, uid, action] if state == ACCEPTED:
                return KnownCommand(uid, action)
            case [state, uid] if state == DONE:
                return KnownCommand(uid, is_done=True)
        return None

    @property
    def evicted(self) -> Mapping[str, datetime]:
        found: dict[str, datetime] = {}
        for key, value in self.entries.items():
            if key.startswith(EVICTED):
                try:
                    found[key.removeprefix(EVICTED)] = datetime.fromisoformat(value)
                except ValueError:
                    continue
        return found

    # -- changing -----------------------------------------------------------------------------------------------
    def accepting(self, uid: str, action: str) -> Records:
        return Records({**self.entries, COMMAND: f"{ACCEPTED}/{uid}/{action}"})

    def done(self, uid: str) -> Records:
        return Records({**self.entries, COMMAND: f"{DONE}/{uid}"})

    def restarting(self, what: str) -> Records:
        return Records({**self.entries, RESTART: what})

    def targeting(self, target: Target) -> Records:
        known = [] if self.restarts_all else [str(each) for each in self.targets]
        return Records({**self.entries, RESTART: ",".join(dict.fromkeys([*known, str(target)]))})

    def losing(self, pod: str, moment: datetime) -> Records:
        return Records({**self.entries, f"{EVICTED}{pod}": moment.isoformat()})

    def holding(self, plugins: Iterable[str], claims: Iterable[str]) -> Records:
        held = {f"{PLUGIN}{name}": name for name in plugins} | {f"{CLAIM}{name}": name for name in claims}
        return Records({**self.entries, **held})

    def without_restart(self) -> Records:
        return Records({key: value for key, value in self.entries.items() if key != RESTART})

    def without_evicted(self, *pods: str) -> Records:
        """Forget these losses; all of them when none is named."""
        gone = {f"{EVICTED}{pod}" for pod in pods}
        kept = {k: v for k, v in self.entries.items() if not (k in gone or (not pods and k.startswith(EVICTED)))}
        return Records(kept)

    def without_plugins(self) -> Records:
        return Records({key: value for key, value in self.entries.items() if not key.startswith(PLUGIN)})
