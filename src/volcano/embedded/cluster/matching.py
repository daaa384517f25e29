"""Requeues the objects that select pods (services, disruption budgets) when a pod changes.

A changed pod's labels go to one key per namespace, and that key requeues the objects whose selector matches them.
"""

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
ALL_SELECTORS: Final = ""  # the name in the key that stands for all objects of a namespace that select pods
AT_ONCE: Final = timedelta(0)


@dataclass(frozen=True, slots=True)
class PodChanged:
    """A pod with these labels changed."""

    labels: frozenset[tuple[str, str]]


def on_pod_change(relevant: Callable[[Pod], Any]) -> Waker:
    """Requeue when the `relevant` part of a pod changes, with the labels before and after."""

    def wakes(change: Change[Pod]) -> Iterable[Wake]:
        if change.old is not None and change.new is not None and relevant(change.old) == relevant(change.new):
            return
        states = [state for state in (change.old, change.new) if state is not None]
        for labels in dict.fromkeys(frozenset(state.labels.items()) for state in states):
            yield Wake(Key(change.object.namespace, ALL_SELECTORS), PodChanged(labels))

    return wakes


def requeue_matching(selectors: Iterable[tuple[R, Selector]], causes: tuple[Hashable, ...]) -> Plan:
    """Requeue the objects whose selector matches a pod that changed."""
    pods = [dict(cause.labels) for cause in causes if isinstance(cause, PodChanged)]
    return tuple(
        Later(AT_ONCE, key=each.key) for each, selector in selectors if any(selector.matches(labels) for labels in pods)
    )


def is_ready(pod: Pod) -> bool:
    return any(condition.type == "Ready" and condition.status == "True" for condition in pod.status.conditions)
