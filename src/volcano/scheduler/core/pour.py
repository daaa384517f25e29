"""What queues deserve of the cluster by weight: poured round after round, for all queues of a round at once.

Amounts are columns here: a row for each queue, a column for each resource. A resource that an amount does not name is
not the same as none of it (model.resources), so which are named is kept beside the amounts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np

from volcano.scheduler.core.node_table import Column, Mask
from volcano.scheduler.core.queue_shares import QueueShare
from volcano.scheduler.model import CPU, EPSILON, MEMORY, PODS, Resources


def pour(total: Resources, shares: Sequence[QueueShare]) -> None:
    """Fill every queue's `deserved` by weight, round after round, until all is distributed or all have enough."""
    if not sum(share.queue.weight for share in shares):
        return
    names = list({name: None for amount in _amounts(total, shares) for name in amount.amounts})
    deserved, named = _poured(_Basin.of(names, total, shares))
    for share, row, there in zip(shares, deserved.tolist(), named.tolist(), strict=True):
        share.deserved = Resources(dict(compress(zip(names, row, strict=True), there)))
        share.refresh_share()


def _amounts(total: Resources, shares: Sequence[QueueShare]) -> list[Resources]:
    return [total, *(share.request for share in shares), *(share.guarantee for share in shares)]


@dataclass(slots=True, eq=False)
class _Basin:
    """What is poured, and what each queue can take."""

    total: Column
    total_named: Mask
    request: Column
    bound: Column  # what the queue may have at most; infinite where nothing is stated
    guarantee: Column
    guarantee_named: Mask
    weight: Column
    always_named: Mask  # cpu and memory
    matters: Mask  # resources that keep the rounds going

    @classmethod
    def of(cls, names: list[str], total: Resources, shares: Sequence[QueueShare]) -> _Basin:
        guaranteed = [[name in share.guarantee.amounts for name in names] for share in shares]
        return cls(
            _columns(names, [total], 0.0)[0],
            np.array([name in total.amounts for name in names]),
            _columns(names, [share.request for share in shares], 0.0),
            _columns(names, [share.real_capability for share in shares], np.inf),
            _columns(names, [share.guarantee for share in shares], 0.0),
            np.array(guaranteed),
            np.array([share.queue.weight for share in shares], dtype=np.float64),
            np.array([name in (CPU, MEMORY) for name in names]),
            np.array([name != PODS for name in names]),
        )


def _columns(names: list[str], amounts: Sequence[Resources], missing: float) -> Column:
    return np.array([[amount.amounts.get(name, missing) for name in names] for amount in amounts])


def _poured(basin: _Basin) -> tuple[Column, Mask]:
    """What each queue deserves, and the resources that this names."""
    all_deserved = np.zeros_like(basin.request)
    all_named = np.tile(basin.always_named, (len(basin.request), 1))
    remaining, remaining_named = basin.total, basin.total_named
    thirsty = np.arange(len(basin.request))
    while weight := basin.weight[thirsty].sum():
        before, named_before = all_deserved[thirsty], all_named[thirsty]
        offered = before + remaining * (basin.weight[thirsty] / weight)[:, None]
        request = basin.request[thirsty]
        deserved = np.minimum(np.minimum(offered, basin.bound[thirsty]), request)
        np.maximum(deserved, basin.guarantee[thirsty], out=deserved)
        named = named_before | remaining_named | basin.guarantee_named[thirsty]
        all_deserved[thirsty], all_named[thirsty] = deserved, named
        has_changed = ((deserved != before) | (named != named_before)).any(axis=1)
        lacks = ((request > deserved) & (request - deserved >= EPSILON)).any(axis=1)
        thirsty = thirsty[has_changed & lacks]
        gained, given_back = _summed(deserved - before), _summed(before - deserved)
        left = np.maximum(remaining + given_back - gained, 0.0)
        left_named = (left > 0.0) | basin.always_named
        is_unchanged = (left == remaining).all() and (left_named == remaining_named).all()
        if is_unchanged or not (left >= EPSILON)[basin.matters].any():
            break
        remaining, remaining_named = left, left_named
    return all_deserved, all_named


def _summed(differences: Column) -> Column:
    """The positive ones, one queue after the other: another order would round differently."""
    summed: Column = np.add.accumulate(np.maximum(differences, 0.0), axis=0)[-1]
    return summed
