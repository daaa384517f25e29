"""Request bodies: from JSON, YAML or protobuf to an object, with bounds on what is read."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from volcano.api.errors import BadRequest, UnsupportedMediaType
from volcano.api.meta import JSON
from volcano.api.scheme import ResourceType
from volcano.embedded.apiserver.schemas.builtin.fitting import fits
from volcano.embedded.apiserver.schemas.builtin.strict_fields import check_types, duplicate_fields
from volcano.embedded.apiserver.wire.json_text import MAX_BODY_NODES, decode_json
from volcano.embedded.apiserver.wire.protobuf import MEDIA_TYPE, decode_protobuf
from volcano.machinery.transport import Request

YAML_MEDIA_TYPES: Final = ("application/yaml", "application/x-yaml", "text/yaml")
APPLY: Final = "application/apply-patch+yaml"


def decode_body(request: Request, *, what: str = "object") -> JSON:
    """The request's object, from JSON (which yaml_bodies makes of YAML) or protobuf; 415 and 400 for anything else."""
    media = request.headers.get("content-type", "application/json").split(";")[0].strip().lower()
    if media == MEDIA_TYPE:
        obj = decode_protobuf(request.body)
    elif media in ("application/json", "*/*", ""):
        obj = decode_json(request.body)
    else:
        raise UnsupportedMediaType(
            "the body of the request was in an unknown format - accepted media types include: "
            "application/json, application/yaml, application/vnd.kubernetes.protobuf"
        )
    if obj is None:
        return {}  # Go decodes null as an empty object
    if not isinstance(obj, dict):
        raise BadRequest(f"couldn't get version/kind; json parse error: the {what} must be a JSON object")
    return obj


def decode_request_kind(request: Request, api_version: str, kind: str) -> JSON:
    """A body of a kind that is not stored, such as an Eviction; its values have the right types."""
    obj = decode_body(request, what=kind)
    group, _, version = api_version.rpartition("/")
    said = obj.get("apiVersion")
    if isinstance(said, str) and said not in ("", api_version) and kind != "DeleteOptions":
        why = f'no kind "{kind}" is registered for version "{said}" in scheme "pkg/runtime/scheme.go:111"'
        raise BadRequest(f'{kind} in version "{said.rpartition("/")[2]}" cannot be handled as a {kind}: {why}')
    if not fits(row := ResourceType(group, version, kind, kind.lower()), obj):
        check_types(row, obj)
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {},
        **{k: v for k, v in obj.items() if v not in (None, "")},
    }


def decode_applied(body: bytes) -> JSON:
    """The object of an apply patch, of which yaml_bodies has made JSON."""
    obj = decode_json(body)
    if not isinstance(obj, dict):
        raise BadRequest("the body must be an object")
    return obj


def yaml_value(body: bytes) -> Any:
    """What a YAML body says, in JSON's types; aliases are not accepted."""
    from volcano.api.bounded_yaml import BoundedYamlError, load_all_yaml  # few clients send YAML

    try:
        found = load_all_yaml(body, max_nodes=MAX_BODY_NODES, allow_aliases=False)
        if len(found) > 1:
            raise BoundedYamlError("expected a single document, but found another")
        return decode_json(msgspec.json.encode(found[0] if found else None))
    except (ValueError, TypeError, RecursionError) as error:
        raise BadRequest(f"the object provided is unrecognized: yaml parse error: {error}") from None


def duplicates_in(raw: bytes, decoded: JSON, *, mode: str) -> list[str]:
    """Fields given twice. The text is only scanned if its length differs from the encoded object's."""
    if mode == "Ignore" or len(msgspec.json.encode(decoded)) == len(raw):
        return []
    try:
        return duplicate_fields(raw)
    except (ValueError, RecursionError):
        return []
