"""Chance: everything random in a run comes from its seed, through generators that are named after what they decide.

Each has a name of its own, so that leaving out one fault does not change what others draw.
"""

from __future__ import annotations

from random import Random as Chance  # noqa: TID251 - seeded, and the only place that makes generators

__all__ = ["Chance", "chance_of"]


def chance_of(what: str, seed: int) -> Chance:
    return Chance(f"{what}/{seed}")
