"""Which faults a seed has: each a value with its own time, so that any subset of them can be run again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from volcano.testing.faults.chance import Chance, chance_of

FAULT_SECONDS: Final = 120.0
"""Faults happen in this time; then they stop, and the system must reach the end it would have reached without them."""
MAX_FAULTS: Final = 30
MAX_HISTORY_FAULTS: Final = 4
SERVER: Final = "apiserver"
HISTORY: Final = "history"
BUSY_SECONDS: Final = 0.4
"""Most happens within this time after a user's request; most faults do too."""

BEFORE: Final = ("429", "500", "503", "refused", "timeout")
"""The request does not reach the server."""
AFTER: Final = ("done-500", "done-503", "done-504", "done-lost")
"""The server carries the request out, and the client gets an error or no answer."""
BLIND: Final = "done-blind"
"""The same, and the client's watches lag from then on: what it has done does not reach it in another way either."""
ON_REQUEST: Final = (*BEFORE, "409", *AFTER, BLIND, "slow", "late", "crash-before", "crash-after")
ON_WATCH: Final = ("cut", "end", "lag")
ON_MACHINE: Final = ("crash", "stop", "clock")
ON_SERVER: Final = ("crash-uncommitted", "crash-torn", "crash-committed", "crash", "full-disk", "stop", "clock")
TARGETS: Final = ("write", "write", "write", "pods", "bindings", "jobs", "podgroups", "status", "any", "leases")


class Fault(msgspec.Struct, frozen=True):
    """One thing that goes wrong at a machine, from a time on; for requests, with the next `count` that match."""

    number: int
    at: float
    machine: str
    kind: str
    target: str = ""
    count: int = 1
    seconds: float = 0.0

    def __str__(self) -> str:
        words = [f"#{self.number} at {self.at:.3f} {self.machine} {self.kind}"]
        if self.target:
            words.append(f"on {self.target} ×{self.count}")
        if self.seconds:
            words.append(f"{self.seconds:.3f} s")
        return " ".join(words)


def faults_of(seed: int, machines: Sequence[str], *, busy: Sequence[float]) -> list[Fault]:
    """The faults of a seed; `busy` are the times at which users do something."""
    chance = chance_of("faults", seed)
    made = []
    for number in range(round(chance.triangular(1, MAX_FAULTS, 6))):
        at = round(_moment(chance, busy), 3)
        family = chance.choices(("request", "watch", "machine", "server"), (8, 4, 4, 2))[0]
        seconds = round(chance.choice((0.05, 1.0, 5.0, 20.0, 60.0)) * chance.uniform(0.2, 1.5), 3)
        machine = chance.choice(machines)
        match family:
            case "request":
                count = chance.choice((1, 1, 1, 2, 3, 8))
                kind, target = chance.choice(ON_REQUEST), chance.choice(TARGETS)
                if kind == "409":
                    target = "update"
                made.append(Fault(number, at, machine, kind, target, count, seconds))
            case "watch":
                target = chance.choice(("pods", "nodes", "jobs", "podgroups", "queues", "any"))
                made.append(Fault(number, at, machine, f"watch-{chance.choice(ON_WATCH)}", target, 1, seconds))
            case "machine":
                made.append(_of_machine(chance, Fault(number, at, machine, chance.choice(ON_MACHINE), seconds=seconds)))
            case _:
                fault = Fault(number, at, SERVER, chance.choice(ON_SERVER), seconds=seconds)
                made.append(_of_machine(chance, fault))
    return sorted(made, key=lambda fault: (fault.at, fault.number))


def faults_of_history(seed: int, *, busy: Sequence[float]) -> list[Fault]:
    """Of the recorder, drawn apart: it only reads, so that all else is as it is without it."""
    chance = chance_of("faults of the history", seed)
    drawn = [fault for fault in faults_of(seed, [HISTORY], busy=busy) if fault.machine == HISTORY]
    chosen = chance.sample(drawn, k=min(len(drawn), chance.randint(0, MAX_HISTORY_FAULTS)))
    moved = [
        msgspec.structs.replace(fault, number=fault.number + MAX_FAULTS, at=round(_moment(chance, busy), 3))
        for fault in chosen
        if fault.target not in ("write", "update", "bindings", "status", "leases")  # it reads only
    ]
    return sorted(moved, key=lambda fault: (fault.at, fault.number))


def _moment(chance: Chance, busy: Sequence[float]) -> float:
    if busy and chance.random() < 0.6:
        return min(chance.choice(busy) + chance.uniform(0, BUSY_SECONDS), FAULT_SECONDS)
    return chance.uniform(0, FAULT_SECONDS)


def _of_machine(chance: Chance, fault: Fault) -> Fault:
    if fault.kind != "clock":
        return fault
    step = chance.choice((-3600, -60, -5, 2, 45, 400, 3600))
    return msgspec.structs.replace(fault, seconds=float(step))
