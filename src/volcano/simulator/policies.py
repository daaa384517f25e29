"""Policies that can be tried by name, each a scheduler configuration, and the reading of a user's own."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from volcano.scheduler.actions import ACTIONS
from volcano.scheduler.framework.config import InvalidConfig, SchedulerConfig, UnknownAction, parse_config
from volcano.scheduler.framework.lint import lint
from volcano.scheduler.plugins import PLUGINS
from volcano.scheduler.service.shipped_configuration import DEFAULT_CONFIGURATION

_EASY: Final = """\
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: easy
    arguments: {{easy.order: {order}, easy.strict: {strict}, easy.scope: cluster}}
  - name: gang
    enableJobOrder: false
  - name: predicates
"""


_BINPACK: Final = """\
- name: binpack
    arguments: {binpack.accelerators: 8}"""
_FRAGMENTATION: Final = """\
- name: deviceshare
    arguments: {deviceshare.VGPUEnable: true}
  - name: fragmentation"""


@dataclass(slots=True, frozen=True)
class SchedulingPolicy:
    """A named configuration; `doubts` are what the linter says of it."""

    name: str
    config: SchedulerConfig
    doubts: tuple[str, ...] = ()


@dataclass(slots=True, frozen=True)
class ShippedPolicy:
    summary: str
    text: str


SHIPPED: Final[Mapping[str, ShippedPolicy]] = {
    "fcfs": ShippedPolicy(
        "first come, first served; a job that does not fit holds up all behind it",
        _EASY.format(order="submit", strict="true"),
    ),
    "fcfs-easy": ShippedPolicy(
        "first come, first served, with EASY backfill by estimated run times",
        _EASY.format(order="submit", strict="false"),
    ),
    "sjf": ShippedPolicy(
        "shortest estimate first; a job that does not fit holds up all behind it",
        _EASY.format(order="shortest", strict="true"),
    ),
    "sjf-easy": ShippedPolicy(
        "shortest estimate first, with EASY backfill",
        _EASY.format(order="shortest", strict="false"),
    ),
    "volcano-default": ShippedPolicy("the configuration that an installation starts with", DEFAULT_CONFIGURATION),
    "volcano-binpack": ShippedPolicy(
        "the same, but nodes that are already in use are filled first, by their GPUs where there are any",
        DEFAULT_CONFIGURATION.replace("- name: nodeorder", _BINPACK),
    ),
    "fragmentation": ShippedPolicy(
        "pods go where the fewest GPUs become unusable for the pods that are typical; GPUs may be shared",
        DEFAULT_CONFIGURATION.replace("- name: nodeorder", _FRAGMENTATION),
    ),
}


class InvalidPolicy(ValueError):
    """No such policy, or its configuration cannot be used; the message says why."""


def shipped_policy(name: str) -> SchedulingPolicy:
    found = SHIPPED.get(name)
    if found is None:
        raise InvalidPolicy(f"no policy is called {name!r}{_hint(name, SHIPPED)}")
    return read_policy(name, found.text)


def read_policy(name: str, text: str) -> SchedulingPolicy:
    """A policy from the text of a volcano-scheduler.conf. A name that nothing has is an error, not left out."""
    try:
        config = parse_config(text, known_actions=ACTIONS)
    except UnknownAction as error:
        raise InvalidPolicy(
            f"{name}: actions: no action is called {error.name!r}{_hint(error.name, ACTIONS)}"
        ) from error
    except InvalidConfig as error:
        raise InvalidPolicy(f"{name}: {error}") from error
    for place, tier in enumerate(config.tiers):
        for option in tier:
            if option.name not in PLUGINS:
                where = f"{name}: tiers[{place}].plugins"
                raise InvalidPolicy(f"{where}: no plugin is called {option.name!r}{_hint(option.name, PLUGINS)}")
    return SchedulingPolicy(name, config, tuple(lint(config, PLUGINS)))


def _hint(name: str, known: Iterable[str]) -> str:
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; there are {', '.join(names)}"
