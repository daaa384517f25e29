"""Waking what selects pods (services, budgets) when a pod changes: the pod's labels go to a key for its namespace."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, TypeVar

from volcano.api.core import Pod
from volcano.api.meta import Key, Resource
from volcano.api.selectors import Selector
from volcano.machinery.controller import Wake, Waker
from volcano.machinery.plan import Later, Plan
from volcano.machinery.world import Change

R = TypeVar("R", bound=Resource)
EVERYONE: Final = ""  # the name in the key that stands for all selectors of a namespace
AT_ONCE: Final = timedelta(0)


@dataclass(frozen=True, slots=True)
class Touched:
    """A pod with these labels changed."""

    labels: frozenset[tuple[str, str]]


def touched_by(concern: Callable[[Pod], Any]) -> Waker:
    """Woken when what `concern` sees of a pod changes, with the labels it had and has."""

    def wakes(change: Change[Pod]) -> Iterable[Wake]:
        if change.old is not None and change.new is not None and concern(change.old) == concern(change.new):
            return
        states = [state for state in (change.old, change.new) if state is not None]
        for labels in dict.fromkeys(frozenset(state.labels.items()) for state in states):
            yield Wake(Key(change.object.namespace, EVERYONE), Touched(labels))

    return wakes


def passed_on(selectors: Iterable[tuple[R, Selector]], causes: tuple[Hashable, ...]) -> Plan:
    """Look at those whose selector matches a pod that changed."""
    pods = [dict(cause.labels) for cause in causes if isinstance(cause, Touched)]
    return tuple(
        Later(AT_ONCE, key=each.key) for each, selector in selectors if any(selector.matches(labels) for labels in pods)
    )


def is_ready(pod: Pod) -> bool:
    return any(condition.type == "Ready" and condition.status == "True" for condition in pod.status.conditions)
