"""What the metrics of all components share: the prefix of their names, and how histogram buckets are spaced.

Which metrics there are is declared by the component that measures them.
"""

from __future__ import annotations

from typing import Final

SUBSYSTEM: Final = "volcano"


def exponential_buckets(first: float, last: float, count: int) -> tuple[float, ...]:
    """`count` bucket bounds from the first to the last, each the same factor larger."""
    factor = (last / first) ** (1 / (count - 1))
    return tuple(first * factor**step for step in range(count))
