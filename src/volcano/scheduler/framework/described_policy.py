"""DescribedPolicy: what the reference says of one action or plugin: a paragraph, and each argument with its default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class DescribedPolicy:
    """Markdown for docs/reference/plugins.md."""

    text: str
    arguments: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Default (empty: none) and meaning of each. A name that ends in NAME stands for all with that prefix."""
