"""Request bodies: from JSON, YAML or protobuf to an object, with bounds on what is read."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from volcano.api.errors import BadRequest, UnsupportedMediaType
from volcano.api.meta import JSON
from volcano.api.scheme import ResourceType
from volcano.embedded.apiserver.schemas.builtin.strict_fields import check_types, duplicate_fields
from volcano.embedded.apiserver.wire.protobuf import MEDIA_TYPE, decode_protobuf
from volcano.machinery.transport import Request

MAX_NESTING: Final = 200


def decode_body(request: Request, *, what: str = "object") -> JSON:
    """The request's object, from JSON, YAML or protobuf; 415 and 400 for anything else."""
    media = request.headers.get("content-type", "application/json").split(";")[0].strip().lower()
    if media in ("application/yaml", "application/x-yaml", "text/yaml"):
        obj = _yaml_value(request.body)
    elif media == MEDIA_TYPE:
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
    check_types(ResourceType(group, version, kind, kind.lower()), obj)
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {},
        **{k: v for k, v in obj.items() if v not in (None, "")},
    }


def decode_json(body: bytes) -> Any:
    check_depth(body)
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError, ValueError) as error:
        raise BadRequest(f"the object provided is unrecognized: json parse error: {error}") from None


_TEXTS: Final = re.compile(rb'"(?:[^"\\]|\\.)*"', re.S)
_ALL_BUT_BRACKETS: Final = bytes(code for code in range(256) if code not in b"[]{}")


def check_depth(body: bytes) -> None:
    """Refuse JSON that is nested too deeply, before a recursive decoder reads it."""
    if body.count(b"{") + body.count(b"[") <= MAX_NESTING:
        return
    depth = 0
    for bracket in _TEXTS.sub(b"", body).translate(None, _ALL_BUT_BRACKETS):
        depth += 1 if bracket in b"[{" else -1
        if depth > MAX_NESTING:
            raise BadRequest(f"the object is nested deeper than {MAX_NESTING} levels")


def decode_yaml(body: bytes) -> JSON:
    """An object in YAML, of which JSON is a part."""
    obj = decode_json(body) if body.lstrip()[:1] == b"{" else _yaml_value(body)
    if not isinstance(obj, dict):
        raise BadRequest("the body must be an object")
    return obj


def _yaml_value(body: bytes) -> Any:
    import yaml

    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(body, Loader=_yaml_loader())):
            raise BadRequest("the object provided is unrecognized: yaml aliases are not accepted")
        obj = yaml.load(body, Loader=_yaml_loader())
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise BadRequest(f"the object provided is unrecognized: yaml parse error: {error}") from None
    try:
        return decode_json(msgspec.json.encode(obj))
    except (TypeError, RecursionError) as error:
        raise BadRequest(f"the object provided is unrecognized: yaml parse error: {error}") from None


def _yaml_loader() -> Any:
    import yaml

    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def duplicates_in(raw: bytes, decoded: JSON, *, mode: str) -> list[str]:
    """Fields given twice. The text is only scanned if its length differs from the encoded object's."""
    if mode == "Ignore" or len(msgspec.json.encode(decoded)) == len(raw):
        return []
    try:
        return duplicate_fields(raw)
    except (ValueError, RecursionError):
        return []
