"""PriorityClasses: reserved names, the highest value, immutable fields."""

from __future__ import annotations

from typing import Final

from volcano.api import field_errors as says
from volcano.api.errors import FieldError
from volcano.api.meta import JSON
from volcano.embedded.apiserver.kinds.strategy import IMMUTABLE, Strategy

PRIORITY_CLASSES: Final = "priorityclasses.scheduling.k8s.io"
MAX_USER_PRIORITY: Final = 1_000_000_000
SYSTEM_PRIORITIES: Final = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
DEFAULT_POLICY: Final = "PreemptLowerPriority"


class PriorityClasses(Strategy):
    def validate(self, obj: JSON) -> list[FieldError]:
        errors: list[FieldError] = []
        name, value, policy = obj["metadata"].get("name") or "", obj.get("value"), obj.get("preemptionPolicy")
        if name.startswith("system-") and name not in SYSTEM_PRIORITIES:
            errors.append(
                says.forbidden(
                    "metadata.name",
                    "priority class names with 'system-' prefix are reserved for system use only. error: "
                    f"{name} is not a known system priority class",
                )
            )
        if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
            errors.append(says.type_invalid("value", value, "must be an integer"))
        elif isinstance(value, int) and value > MAX_USER_PRIORITY and SYSTEM_PRIORITIES.get(name) != value:
            why = f"maximum allowed value of a user defined priority is {MAX_USER_PRIORITY}"
            errors.append(says.forbidden("value", why))
        if policy is not None and policy not in (DEFAULT_POLICY, "Never"):
            errors.append(says.not_supported("preemptionPolicy", policy, ("Never", DEFAULT_POLICY)))
        return errors

    def validate_update(self, obj: JSON, old: JSON) -> list[FieldError]:
        errors, policy = self.validate(obj), obj.get("preemptionPolicy")
        if (old.get("value") or 0) != (obj.get("value") or 0):
            errors.append(says.forbidden("value", "may not be changed in an update."))
        if (old.get("preemptionPolicy") or DEFAULT_POLICY) != (policy or DEFAULT_POLICY):
            errors.append(says.invalid("preemptionPolicy", policy, IMMUTABLE))
        return errors
