"""Whether an object of a built-in kind is plainly right: every field known and of its type, and none null.

Most writes are. A struct is made of each schema, and msgspec compares an object with it many times as fast as the walks
of strict_fields and decoding do. Those remain for the other objects: they drop what is unknown and word the refusals.
A yes is always true; a no only means that the walks have to look.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Final, Union

import msgspec

from volcano.api.meta import JSON
from volcano.api.schemas.openapi_table import (
    FREE_FORM,
    INT_OR_STRING,
    JSON_SCHEMA,
    MICRO_TIME,
    QUANTITY,
    SCHEMA_OR,
    TIME,
    core_table,
    schema_name,
)
from volcano.api.scheme import ResourceType

_LONG_MONTH: Final = r"(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])"
_SHORT_MONTH: Final = r"(?:0[469]|11)-(?:0[1-9]|[12]\d|30)"
_FEBRUARY: Final = r"02-(?:0[1-9]|1\d|2[0-8])"
_TIME_OF_DAY: Final = r"(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?Z"
_MOMENT: Final = rf"\A[1-9]\d{{3}}-(?:{_LONG_MONTH}|{_SHORT_MONTH}|{_FEBRUARY})T{_TIME_OF_DAY}\Z"
"""Times as programs write them; other spellings, and the 29th of February, are for the walks."""
_AMOUNT: Final = r"\A[0-9]{1,15}(?:m|k|M|G|Ki|Mi|Gi)?\Z"
_BASE64: Final = r"\A(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?\Z"

_NOT_NULL: Final = Union[str, int, float, bool, list[Any], dict[str, Any]]  # noqa: UP007 - a value, not an annotation
_INT32: Final = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
_INT64: Final = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_OF_NAME: Final[dict[str, Any]] = {
    QUANTITY: Annotated[str, msgspec.Meta(pattern=_AMOUNT)],
    INT_OR_STRING: Union[str, _INT32],  # noqa: UP007
    TIME: Annotated[str, msgspec.Meta(pattern=_MOMENT)],
    MICRO_TIME: Annotated[str, msgspec.Meta(pattern=_MOMENT)],
}


class _CannotSay(Exception):
    """The type contains itself."""


def fits(resource: ResourceType, obj: JSON) -> bool:
    """Whether nothing of the object is unknown, null or of another type than its field; it may lack fields."""
    kind = _struct_of_kind(resource)
    if kind is None:
        return False
    try:
        msgspec.convert(obj, kind)
    except msgspec.ValidationError:
        return False
    return True


@cache
def _struct_of_kind(resource: ResourceType) -> Any:
    name = schema_name(resource.group, resource.version, resource.kind)
    if name is None:
        return None
    try:
        return _type_of(name)
    except _CannotSay:
        return None


@cache
def _type_of(name: str) -> Any:
    if name in _OF_NAME:
        return _OF_NAME[name]
    if name == JSON_SCHEMA or name in SCHEMA_OR:
        raise _CannotSay
    if name in FREE_FORM:
        return _NOT_NULL
    return _struct(core_table().schemas[name])


def _type_in(schema: JSON) -> Any:
    if "$ref" in schema:
        return _type_of(schema["$ref"])
    kind, form = schema.get("type"), schema.get("format")
    if isinstance(schema.get("items"), dict):
        return list[_type_in(schema["items"])]  # type: ignore[misc]
    if isinstance(schema.get("additionalProperties"), dict):
        return dict[str, _type_in(schema["additionalProperties"])]  # type: ignore[misc]
    if "properties" in schema:
        return _struct(schema)
    if kind == "string":
        return Annotated[str, msgspec.Meta(pattern=_BASE64)] if form == "byte" else str
    if kind == "integer":
        return _INT64 if form == "int64" else _INT32
    return {"boolean": bool, "number": Union[int, float], "object": dict[str, Any]}.get(str(kind), _NOT_NULL)  # noqa: UP007


def _struct(schema: JSON) -> Any:
    fields, names = [], {}
    for number, (name, child) in enumerate(schema.get("properties", {}).items()):
        names[f"f{number}"] = name  # names of JSON need not be names of Python
        fields.append((f"f{number}", Union[_type_in(child), msgspec.UnsetType], msgspec.UNSET))  # noqa: UP007
    return msgspec.defstruct("Fitting", fields, rename=names, forbid_unknown_fields=True, gc=False)
