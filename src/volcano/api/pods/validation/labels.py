"""Labels, annotations and label selectors inside a pod."""

from __future__ import annotations

from volcano.api import names
from volcano.api.fields import Field


def check_labels(owner: Field, name: str) -> None:
    """Keys are qualified names, values are label values; errors are at the map itself, as Kubernetes has them."""
    place = owner.at(name)
    for key, entry in owner.entries(name):
        for problem in names.label_key_problems(key):
            place.invalid(problem, key)
        value = entry.as_text()
        for problem in names.label_value_problems(value):
            place.invalid(problem, value)


def check_annotations(owner: Field, name: str) -> dict[str, str]:
    """The annotations that are texts, after checking them."""
    place = owner.at(name)
    found = {key: entry.as_text() for key, entry in owner.entries(name)}
    for key in found:
        for problem in names.qualified_name_problems(key.lower()):
            place.invalid(problem, key)
    if names.annotations_are_too_large(found):
        place.too_long(names.MAX_ANNOTATIONS_BYTES)
    return found


def check_label_selector(selector: Field) -> None:
    if not selector.is_set:
        return
    check_labels(selector, "matchLabels")
    for requirement in selector.each("matchExpressions"):
        values, operator = requirement.texts("values"), requirement.text("operator")
        match operator:
            case "In" | "NotIn":
                if not values:
                    requirement.at("values").required("must be specified when `operator` is 'In' or 'NotIn'")
            case "Exists" | "DoesNotExist":
                if values:
                    requirement.at("values").forbidden(
                        "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                    )
            case _:
                requirement.at("operator").invalid("not a valid selector operator", operator)
        check_label_key(requirement.at("key"))
        for value in requirement.each("values"):
            value.check(names.label_value_problems(value.as_text()))


def check_label_key(place: Field) -> None:
    key = place.as_text()
    for problem in names.label_key_problems(key):
        place.invalid(problem, key)
