"""Published figures with which `volcano bench` compares: pods per second, as docs/benchmarks.md has them."""

from __future__ import annotations

from typing import Final

ON_KUBERNETES: Final = {"1000x1": 66, "100x10": 160, "10x100": 211, "1x1000": 237}
"""kube-apiserver and etcd with 1,000 simulated nodes, all on two CPUs."""

EMBEDDED: Final[dict[str, float]] = {}
"""`volcano up --simulated-nodes 100` on two CPUs."""


def published_rate(shape: str, *, is_embedded: bool) -> float | None:
    return (EMBEDDED if is_embedded else ON_KUBERNETES).get(shape)
