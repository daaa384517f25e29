"""Generators: when jobs arrive and how long they run, drawn from a seeded source."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

from volcano.simulator.draws import Draws
from volcano.simulator.fields import Fields, InvalidScenario, seconds_at

MAX_GENERATED_JOBS: Final = 1_000_000
SECONDS_PER_DAY: Final = 86_400.0
KINDS: Final = ("poisson", "bursts", "daily", "uniform")


def arrival_times(fields: Fields, chance: Draws) -> list[float]:
    """`{poisson: {every: 30s}, from: 0s, until: 8h, count: 100}`: when each job is submitted."""
    kind = next((kind for kind in KINDS if fields.has(kind)), "")
    if not kind:
        raise InvalidScenario(f"{fields.path}: needs one of {', '.join(KINDS)}")
    begin = fields.seconds("from", 0.0)
    until = fields.seconds("until", math.inf)
    count = fields.integer("count", MAX_GENERATED_JOBS, least=1, most=MAX_GENERATED_JOBS)
    if until == math.inf and not fields.has("count"):
        raise InvalidScenario(f"{fields.path}: needs `count` or `until`, or it would never end")
    times = _GENERATORS[kind](fields.fields(kind), chance, begin)
    fields.done()
    found = []
    for moment in islice(times, count):
        if moment >= until:
            break
        found.append(moment)
    return found


def _poisson(fields: Fields, chance: Draws, begin: float) -> Iterator[float]:
    """Independent arrivals, so long after one another on average."""
    every = _positive(fields, "every")
    fields.done()
    moment = begin
    while True:
        moment += chance.exponential(every)
        yield moment


def _uniform(fields: Fields, _chance: Draws, begin: float) -> Iterator[float]:
    """One after the other at equal distances."""
    every = _positive(fields, "every")
    fields.done()
    moment = begin
    while True:
        yield moment
        moment += every


def _bursts(fields: Fields, chance: Draws, begin: float) -> Iterator[float]:
    """So many at once, then a pause of the same mean; `spread` is the time over which a burst arrives."""
    size, every = fields.integer("size", least=1, most=100_000), _positive(fields, "every")
    spread = fields.seconds("spread", 0.0)
    fields.done()
    moment = begin
    while True:
        yield from sorted(moment + chance.between(0.0, spread) for _ in range(size))
        moment += every


def _daily(fields: Fields, chance: Draws, begin: float) -> Iterator[float]:
    """A rate that follows the day as a cosine: highest at `peak`, `depth` (0 to 1) lower at night."""
    per_day = fields.number("perDay", least=0.001)
    peak, depth = fields.seconds("peak", 14 * 3600.0), fields.number("depth", 0.8)
    fields.done()
    if depth > 1.0:
        raise InvalidScenario(f"{fields.at('depth')}: must be at most 1")
    highest = per_day / SECONDS_PER_DAY * (1.0 + depth)
    moment = begin
    while True:
        moment += chance.exponential(1.0 / highest)
        angle = 2.0 * math.pi * (moment - peak) / SECONDS_PER_DAY
        if chance.share() * (1.0 + depth) <= 1.0 + depth * math.cos(angle):
            yield moment


_GENERATORS: Final[dict[str, Callable[[Fields, Draws, float], Iterator[float]]]] = {
    "poisson": _poisson,
    "bursts": _bursts,
    "daily": _daily,
    "uniform": _uniform,
}


def draw_seconds(value: object, path: str, chance: Draws) -> float:
    """A duration, or one drawn from `{logNormal: …}`, `{exponential: …}`, `{uniform: …}`; `min` and `max` bound it."""
    if not isinstance(value, dict):
        return seconds_at(value, path)
    fields = Fields(value, path)
    least, most = fields.seconds("min", 0.0), fields.seconds("max", math.inf)
    if fields.has("logNormal"):
        shape = fields.fields("logNormal")
        drawn = chance.log_normal(_positive(shape, "median"), shape.number("sigma", 1.0))
        shape.done()
    elif fields.has("exponential"):
        shape = fields.fields("exponential")
        drawn = chance.exponential(_positive(shape, "mean"))
        shape.done()
    elif fields.has("uniform"):
        shape = fields.fields("uniform")
        drawn = chance.between(shape.seconds("from", 0.0), shape.seconds("to"))
        shape.done()
    else:
        raise InvalidScenario(f"{path}: needs a duration, or one of logNormal, exponential, uniform")
    fields.done()
    return round(min(max(drawn, least), most), 3)


def _positive(fields: Fields, key: str) -> float:
    found = fields.seconds(key)
    if found <= 0.0:
        raise InvalidScenario(f"{fields.at(key)}: must be above 0")
    return found
