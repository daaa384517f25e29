"""CEL's format library: texts that must have a named format, and what is wrong with those that do not.

In Kubernetes `validate` gives an optional list. The engine accepts no optionals from functions, so an empty list, and
an empty map for a format that does not exist, stand for none. `hasValue`, `value` and `optMap` know
them, `orValue` does not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from volcano.api.cel.urls import parse_url
from volcano.api.cel.values import Function, made, text_of
from volcano.api.formats import FORMATS as SHAPES
from volcano.api.names import (
    dns_1035_label_problems,
    dns_label_problems,
    label_value_problems,
    qualified_name_problems,
    subdomain_problems,
)

FORMAT: Final = "kubernetes.NamedFormat"
_UUID: Final = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.ASCII | re.IGNORECASE)

Problems = Callable[[str], list[str]]


def _prefix(problems: Problems) -> Problems:
    """The check of a name's prefix: it may end with a dash, which is not checked."""
    return lambda text: problems(f"{text[:-2]}a" if len(text) > 1 and text.endswith("-") else text)


def _uri_problems(text: str) -> list[str]:
    try:
        parse_url(text)
    except ValueError as error:
        return [str(error)]
    return []


def _shape(name: str, problem: str) -> Problems:
    return lambda text: [] if SHAPES[name](text) else [problem]


FORMATS: Final[Mapping[str, Problems]] = {
    "dns1123Label": dns_label_problems,
    "dns1123Subdomain": subdomain_problems,
    "dns1035Label": dns_1035_label_problems,
    "qualifiedName": qualified_name_problems,
    "dns1123LabelPrefix": _prefix(dns_label_problems),
    "dns1123SubdomainPrefix": _prefix(subdomain_problems),
    "dns1035LabelPrefix": _prefix(dns_1035_label_problems),
    "labelValue": label_value_problems,
    "uri": _uri_problems,
    "uuid": lambda text: [] if _UUID.fullmatch(text) else ["does not match the UUID format"],
    "byte": _shape("byte", "invalid base64"),
    "date": _shape("date", "invalid date"),
    "datetime": _shape("datetime", "invalid datetime"),
}


def _named(name: str) -> dict[str, str]:
    return made(FORMAT, name) if name in FORMATS else {}


def _validate(value: Mapping[str, Any], text: str) -> list[str]:
    return FORMATS[text_of(value, FORMAT)](text)


def _value(found: Any) -> Any:
    if not found:
        raise ValueError("optional.none() dereference")
    return found


def _maker(name: str) -> Callable[[], dict[str, str]]:
    return lambda: made(FORMAT, name)


FUNCTIONS: Final[tuple[Function, ...]] = (
    Function("format.named", ("STRING",), "DYN", _named, False),
    *(Function(f"format.{name}", (), "MAP", _maker(name), False) for name in FORMATS),
    Function("validate", ("MAP", "STRING"), "DYN", _validate),
    Function("hasValue", ("LIST",), "BOOL", bool),
    Function("hasValue", ("MAP",), "BOOL", bool),
    Function("value", ("LIST",), "DYN", _value),
    Function("value", ("MAP",), "DYN", _value),
)
