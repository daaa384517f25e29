"""Tier: who or what has to act so that something that waits goes on."""

from __future__ import annotations

from enum import StrEnum


class Tier(StrEnum):
    YOU = "needs a change by you"
    ADMINISTRATOR = "needs a change by an administrator"
    EVENT = "waits for a known event"
    TURN = "waits its turn"
    STARTING = "starting"
    FAILING = "failing"
    NOTHING = "nothing to do"

    @property
    def waiting_helps(self) -> bool:
        return self not in (Tier.YOU, Tier.ADMINISTRATOR, Tier.FAILING)
