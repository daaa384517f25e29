"""Checks of fields that several kinds have: quantities and label selectors, in Kubernetes' words."""

from __future__ import annotations

from typing import Any

from volcano.api import field_errors as says
from volcano.api.errors import FieldError
from volcano.api.fields import Field
from volcano.api.meta import JSON
from volcano.api.names import qualified_name_problems
from volcano.api.pods.validation.labels import check_label_selector
from volcano.api.quantity import QuantityError, parse_quantity


def field_at(obj: JSON, path: tuple[str, ...]) -> Any:
    """The value at a path of field names; None where there is none."""
    found: Any = obj
    for part in path:
        found = found.get(part) if isinstance(found, dict) else None
    return found


def quantity_map_errors(obj: JSON, *paths: tuple[str, ...]) -> list[FieldError]:
    """The maps of quantities at these paths."""
    return [error for path in paths for error in quantity_errors(".".join(path), field_at(obj, path))]


def quantity_errors(path: str, amounts: Any) -> list[FieldError]:
    """A map of quantities: each must be one, and none negative."""
    if amounts is None:
        return []
    if not isinstance(amounts, dict):
        return [says.type_invalid(path, amounts, "must be a map of quantities")]
    errors: list[FieldError] = []
    for name, amount in amounts.items():
        where = f"{path}[{name}]"
        errors += [says.invalid(where, name, problem) for problem in qualified_name_problems(name)]
        try:
            if parse_quantity(amount).nanos < 0:
                errors.append(says.invalid(where, amount, "must be greater than or equal to 0"))
        except (QuantityError, TypeError):
            errors.append(says.invalid(where, amount, QuantityError.MESSAGE))
    return errors


def selector_errors(path: str, selector: JSON) -> list[FieldError]:
    place = Field(selector, path)
    check_label_selector(place)
    return place.errors
