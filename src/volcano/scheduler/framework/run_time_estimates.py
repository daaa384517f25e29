"""How long a job without an estimate is taken to run: the same for backfill, reservations and expected starts."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from volcano.scheduler.framework.config import SchedulerConfig

DEFAULT_ESTIMATE: Final = timedelta(hours=24)
DEFAULT_ESTIMATE_ARGUMENT: Final = "easy.default-estimate"


def default_estimate(config: SchedulerConfig) -> timedelta:
    """What the plugin `easy` is configured with, also where only a Reservation asks."""
    options = [option for tier in config.tiers for option in tier if option.name == "easy"]
    stated = options[0].arguments.duration(DEFAULT_ESTIMATE_ARGUMENT) if options else None
    return stated or DEFAULT_ESTIMATE
