"""Whether a toleration matches a taint, as Kubernetes 1.36 matches them.

The scheduler, taint eviction, DaemonSets and admission ask here; how long a toleration lasts is taint eviction's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from volcano.api.core import Taint, Toleration

_INTEGER: Final = re.compile(r"0|-?[1-9][0-9]{0,18}")
_MAX_INT64: Final = 2**63 - 1


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """An operator that is unknown matches nothing; `Lt` and `Gt` compare whole numbers, other values match nothing."""
    if not names(toleration, taint.key, taint.effect):
        return False
    match toleration.operator:
        case "Exists":
            return True
        case "" | "Equal":
            return bool(toleration.key) and toleration.value == taint.value
        case "Lt" | "Gt":
            bound, value = _integer(toleration.value), _integer(taint.value)
            if bound is None or value is None:
                return False
            return value < bound if toleration.operator == "Lt" else value > bound
    return False


def names(toleration: Toleration, key: str, effect: str) -> bool:
    """Whether a toleration is about taints with this key and effect, whatever their value. Empty means any."""
    return toleration.key in ("", key) and toleration.effect in ("", effect)


def is_tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    """Whether one of the tolerations matches the taint."""
    return any(tolerates(toleration, taint) for toleration in tolerations)


def _integer(text: str) -> int | None:
    number = int(text) if _INTEGER.fullmatch(text) else None
    return number if number is not None and -_MAX_INT64 - 1 <= number <= _MAX_INT64 else None
