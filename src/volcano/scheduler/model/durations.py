"""Durations in annotations and arguments: what cannot be read counts as absent."""

from __future__ import annotations

from datetime import timedelta

from volcano.api import durations


def parse_duration(text: str) -> timedelta | None:
    """The span a text names; None when it names none."""
    try:
        return durations.parse_duration(text)
    except durations.DurationError:
        return None
