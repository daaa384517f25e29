"""Objects as YAML text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import yaml

from volcano.api.meta import JSON


def as_yaml(objects: Iterable[JSON], *, width: int = 120) -> str:
    """The objects as documents, in the order of their fields."""
    dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    return str(yaml.dump_all(objects, Dumper=dumper, sort_keys=False, default_flow_style=False, width=width))
