"""Alike: whether waiting tasks of one shape can be allocated in one step, without asking plugins about each.

Only if every plugin that would be asked or notified about a task says so (`Plugin.alike_limit`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from volcano.scheduler.framework.questions import Questions
from volcano.scheduler.model import Job, Task

ASKED: Final = ("allocatable", "bindable", "pre_filter", "on_allocate", "job_ready")
"""The points that are asked about every single task that is allocated."""


class Alike:
    def __init__(self, ask: Questions) -> None:
        plugins: list[Any] = list({id(plugin): plugin for point in ASKED for plugin in ask.plugins(point)}.values())
        self._limits: list[Callable[[Job, Task, int], int]] = []
        self._notified: list[Callable[[Sequence[Task]], None]] = []
        # Without an answer to job_ready every job is ready, and then a job gets one task at a time.
        if ask.is_answered("job_ready") and all(_speaks_for_all(plugin) for plugin in plugins):
            self._limits = [plugin.alike_limit for plugin in plugins]
            self._notified = [p.on_allocate_alike for p in plugins if is_overridden(p, "on_allocate_alike")]

    def limit(self, job: Job, task: Task, number: int) -> int:
        """Of `number` tasks like this one, how many may be allocated in one step; 0: each on its own."""
        if not self._limits:
            return 0
        for ask in self._limits:
            number = ask(job, task, number)
            if number < 2:
                return 0
        return number

    def allocated(self, tasks: Sequence[Task]) -> None:
        for notify in self._notified:
            notify(tasks)


def is_overridden(plugin: object, method: str) -> bool:
    """Whether the plugin replaces the default, which need not be called."""
    found = getattr(type(plugin), method, None)
    return found is not None and not getattr(found, "is_default", False)


def _speaks_for_all(plugin: object) -> bool:
    """Whether what the plugin says about alike tasks accounts for its answers about one task.

    A class that extends a plugin and answers a point anew must say anew what holds for alike tasks.
    """
    if not is_overridden(plugin, "alike_limit"):
        return False
    said = _definer(plugin, "alike_limit")
    return all(_definer(plugin, point) >= said for point in ASKED)


def _definer(plugin: object, method: str) -> int:
    """How far up in the plugin's classes the method is defined; a method that does not exist, beyond all of them."""
    classes = type(plugin).__mro__
    return next((depth for depth, owner in enumerate(classes) if method in vars(owner)), len(classes))
