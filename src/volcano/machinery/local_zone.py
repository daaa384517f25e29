"""The process's time zone, by name where it has one: the zone of schedules that name none."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

LOCAL: Final = Path("/etc/localtime")


def local_zone(environment: Mapping[str, str] = os.environ, local: Path = LOCAL) -> tzinfo:
    """As C programs find it: TZ, then /etc/localtime, then UTC. A zone, not an offset, so that summer time is kept."""
    named = environment.get("TZ")
    if named is not None:
        return _named(named.lstrip(":"))
    try:
        with local.resolve().open("rb") as rules:
            return ZoneInfo.from_file(rules, key=_name_of(local))
    except (OSError, ValueError):
        return UTC


def _named(text: str) -> tzinfo:
    try:
        if text.startswith("/"):
            with Path(text).open("rb") as rules:
                return ZoneInfo.from_file(rules)
        return ZoneInfo(text) if text else UTC
    except (OSError, ValueError, ZoneInfoNotFoundError):
        return UTC


def _name_of(local: Path) -> str | None:
    _, found, name = str(local.resolve()).partition("/zoneinfo/")
    return name if found else None
