"""Validation of built-in kinds in Kubernetes' words: field paths and messages as its API server writes them."""

from __future__ import annotations

from volcano.api.errors import FieldError
from volcano.api.meta import JSON
from volcano.api.scheme import ResourceType


def core_errors(row: ResourceType, obj: JSON, old: JSON | None) -> list[FieldError]:
    return []
