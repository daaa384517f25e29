"""Namespaces: labelled with their name, and held by finalizers in their spec until their contents are gone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from volcano.api.meta import JSON
from volcano.api.names import dns_label_problems
from volcano.embedded.apiserver.kinds.strategy import Strategy

FINALIZER: Final = "kubernetes"
NAME_LABEL: Final = "kubernetes.io/metadata.name"


class Namespaces(Strategy):
    has_generation = False
    delete_returns_object = True
    selectable_fields: Mapping[str, str] = {"status.phase": ""}
    initial_status = {"phase": "Active"}

    def name_problems(self, name: str) -> list[str]:
        return dns_label_problems(name)

    def prepare_create(self, obj: JSON) -> None:
        super().prepare_create(obj)
        spec = obj.setdefault("spec", {})
        if isinstance(spec, dict) and FINALIZER not in (spec.get("finalizers") or []):
            spec["finalizers"] = [*(spec.get("finalizers") or []), FINALIZER]
        name = obj["metadata"].get("name")
        if name:  # without one it is refused afterwards
            obj["metadata"].setdefault("labels", {})[NAME_LABEL] = name

    def is_held(self, obj: JSON) -> bool:
        return bool((obj.get("spec") or {}).get("finalizers"))

    def mark_deleting(self, obj: JSON) -> None:
        obj["status"] = {**(obj.get("status") or {}), "phase": "Terminating"}
