"""CustomResourceDefinitions: validation, accepted names, and the finalizer that waits for their objects to go.

What they define is served by registry.definition_follower, and cleaned up by upkeep.definition_cleaner.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from volcano.api.errors import FieldError
from volcano.api.meta import JSON
from volcano.api.schemas.shipped_crds import shipped_schemas
from volcano.embedded.apiserver.kinds.strategy import AllocationContext, Strategy

DEFINITIONS: Final = "customresourcedefinitions.apiextensions.k8s.io"
CLEANUP_FINALIZER: Final = "customresourcecleanup.apiextensions.k8s.io"


class Definitions(Strategy):
    def prepare_create(self, obj: JSON) -> None:
        super().prepare_create(obj)
        finalizers = obj["metadata"].get("finalizers") or []
        if isinstance(finalizers, list) and CLEANUP_FINALIZER not in finalizers:
            obj["metadata"]["finalizers"] = [*finalizers, CLEANUP_FINALIZER]

    def validate(self, obj: JSON) -> Sequence[FieldError]:
        from volcano.embedded.apiserver.schemas.crd.definition_validation import validate_crd

        return validate_crd(obj, shipped_schemas())

    def validate_update(self, obj: JSON, old: JSON) -> Sequence[FieldError]:
        from volcano.embedded.apiserver.schemas.crd.definition_validation import validate_crd_update

        return validate_crd_update(obj, old, shipped_schemas())

    def allocate(self, obj: JSON, old: JSON | None, context: AllocationContext) -> None:
        if not obj["metadata"].get("deletionTimestamp"):
            _set_status(obj, context.names_taken(obj), context.timestamp())


def _set_status(crd: JSON, taken: Mapping[str, str], now: str) -> None:
    """Accept the names, or report which are taken; the definition is established once they are accepted."""
    names = crd["spec"]["names"]
    names.setdefault("singular", str(names.get("kind", "")).lower())
    names.setdefault("listKind", f"{names.get('kind', '')}List")
    status = crd.setdefault("status", {})
    conditions = {c.get("type"): c for c in status.get("conditions") or [] if isinstance(c, dict)}
    if taken:
        what = ", ".join(f'"{name}" is already in use' for name in taken.values())
        _condition(conditions, "NamesAccepted", "False", "Conflict", what, now)
        established = conditions.get("Established", {}).get("status") == "True"
        if not established:
            _condition(conditions, "Established", "False", "NotAccepted", "not all names are accepted", now)
    else:
        status["acceptedNames"] = dict(names)
        _condition(conditions, "NamesAccepted", "True", "NoConflicts", "no conflicts found", now)
        _condition(
            conditions, "Established", "True", "InitialNamesAccepted", "the initial names have been accepted", now
        )
    status.setdefault("acceptedNames", {"plural": "", "kind": ""})
    status["conditions"] = list(conditions.values())
    stored = [v["name"] for v in crd["spec"]["versions"] if v.get("storage")]
    status["storedVersions"] = sorted({*(status.get("storedVersions") or ()), *stored})


def _condition(conditions: dict[Any, JSON], kind: str, status: str, reason: str, message: str, now: str) -> None:
    before = conditions.get(kind)
    since = before["lastTransitionTime"] if before and before.get("status") == status else now
    conditions[kind] = {
        "type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since,
    }  # fmt: skip


def is_established(crd: JSON) -> bool:
    conditions = (crd.get("status") or {}).get("conditions") or []
    return any(c.get("type") == "Established" and c.get("status") == "True" for c in conditions)
