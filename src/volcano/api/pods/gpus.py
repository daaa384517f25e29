"""Which resources count as GPUs in reports, of all makers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from volcano.api.quantity import Quantity

GPU_NAMES: Final = frozenset(("gpu", "gpu-number", "vgpu-number", "i915", "xe"))
"""The part of a resource's name after the slash, such as `nvidia.com/gpu` or `volcano.sh/vgpu-number`."""


def is_gpu(resource: str) -> bool:
    maker, slash, name = resource.partition("/")
    return bool(slash) and name in GPU_NAMES and bool(maker)


def milli_gpus(amounts: Mapping[str, Quantity]) -> int:
    """Of all makers together, in thousandths."""
    return sum(amount.milli for name, amount in amounts.items() if is_gpu(name))
