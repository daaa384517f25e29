"""What cells of tables have in common: names, ages, labels and selectors on one line, the first few of many."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from volcano.api.ages import age
from volcano.api.meta import JSON
from volcano.api.quantity import QuantityError, format_quantity
from volcano.embedded.apiserver.schemas.reading import mapping, moment, objects, text, texts

NONE: Final = "<none>"
UNSET: Final = "<unset>"
UNKNOWN: Final = "<unknown>"
_MAX_SHOWN_ITEMS: Final = 3


def name_of(obj: JSON) -> str:
    return text(obj, "metadata", "name")


def age_of(obj: JSON, now: datetime) -> str:
    return age(moment(obj, "metadata", "creationTimestamp"), now)


def containers_of(obj: JSON, *path: str) -> list[Any]:
    containers = objects(obj, *path, "spec", "containers")
    return [",".join(text(c, "name") for c in containers), ",".join(text(c, "image") for c in containers)]


def labels_text(labels: Mapping[str, Any]) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items())) or NONE


def selector_text(selector: Any) -> str:
    """A label selector on one line: `app=web,tier in (a,b)`."""
    if not isinstance(selector, dict):
        return NONE
    terms = [(key, f"{key}={value}") for key, value in mapping(selector, "matchLabels").items()]
    for rule in objects(selector, "matchExpressions"):
        key, values = text(rule, "key"), ",".join(sorted(texts(rule, "values")))
        shown = {"In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})", "Exists": key}
        terms.append((key, shown.get(text(rule, "operator"), f"!{key}")))
    return ",".join(term for _, term in sorted(terms)) or NONE


def quantity_text(value: Any) -> str:
    try:
        return format_quantity(value) if isinstance(value, str | int | float) else "0"
    except QuantityError:
        return str(value)


def or_none(value: str) -> str:
    return value or NONE


def first_few(items: Iterable[str], total: int | None = None) -> str:
    found = list(items)
    shown = ",".join(found[:_MAX_SHOWN_ITEMS])
    count = len(found) if total is None else total
    return f"{shown} + {count - _MAX_SHOWN_ITEMS} more..." if len(found) > _MAX_SHOWN_ITEMS else shown


def ingress_addresses(obj: JSON) -> str:
    entries = objects(obj, "status", "loadBalancer", "ingress")
    return ",".join(sorted({text(e, "ip") or text(e, "hostname") for e in entries} - {""}))
