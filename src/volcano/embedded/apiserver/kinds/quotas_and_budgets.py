"""ResourceQuotas and PodDisruptionBudgets: bounds on what a namespace may use and on what may be evicted."""

from __future__ import annotations

from volcano.api import field_errors as says
from volcano.api.errors import FieldError
from volcano.api.meta import JSON
from volcano.api.names import path_segment_problems, percent_problems
from volcano.embedded.apiserver.kinds.field_checks import quantity_map_errors, selector_errors
from volcano.embedded.apiserver.kinds.strategy import Strategy


class Quotas(Strategy):
    has_generation = False
    initial_status = {}

    def validate(self, obj: JSON) -> list[FieldError]:
        return quantity_map_errors(obj, ("spec", "hard"))


class PodDisruptionBudgets(Strategy):
    def name_problems(self, name: str) -> list[str]:
        return path_segment_problems(name)

    def validate(self, obj: JSON) -> list[FieldError]:
        spec = obj.get("spec") or {}
        errors: list[FieldError] = []
        if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
            errors.append(says.invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set"))
        for field in ("minAvailable", "maxUnavailable"):
            value = spec.get(field)
            if isinstance(value, str):
                errors += [says.invalid(f"spec.{field}", value, problem) for problem in percent_problems(value)]
            elif isinstance(value, int) and value < 0:
                errors.append(says.invalid(f"spec.{field}", value, "must be greater than or equal to 0"))
        return errors + selector_errors("spec.selector", spec.get("selector") or {})
