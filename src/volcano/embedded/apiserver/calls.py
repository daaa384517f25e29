"""What every verb is given: the parts of the server, and one parsed, authorized call."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from volcano.api.errors import BadRequest, NotFound, UnsupportedMediaType
from volcano.api.meta import JSON
from volcano.api.scheme import ResourceType
from volcano.api.times import timestamp
from volcano.embedded.apiserver.access.authentication import Claims
from volcano.embedded.apiserver.admitting.chain import AdmissionChain
from volcano.embedded.apiserver.registry.resources import Registry, Served
from volcano.embedded.apiserver.registry.watch_hub import WatchHub
from volcano.embedded.apiserver.schemas.builtin.strict_fields import check_types
from volcano.embedded.apiserver.store.contract import ObjectKey, Store, Stored
from volcano.embedded.apiserver.wire.outbound import Outbound
from volcano.embedded.apiserver.wire.protobuf import MEDIA_TYPE, decode_protobuf
from volcano.embedded.apiserver.wire.representation import Shown, view_from
from volcano.embedded.apiserver.wire.requests import Target
from volcano.machinery.clock import Clock
from volcano.machinery.ids import Ids
from volcano.machinery.transport import Handler, Request, User

DEEPEST: Final = 200


@dataclass(slots=True)
class Backend:
    """The server's parts."""

    store: Store
    registry: Registry
    hub: WatchHub
    clock: Clock
    ids: Ids
    admission: AdmissionChain
    issue_token: Callable[[Claims], str]
    outbound: Outbound
    local_services: dict[tuple[str, str], Handler] = field(default_factory=dict)
    """Services answered in this very process: (namespace, name) → its request function; paths begin at the service."""

    def timestamp(self) -> str:
        return timestamp(self.clock.now())


@dataclass(slots=True)
class Call:
    """One request about one resource, known to be allowed."""

    backend: Backend
    request: Request
    target: Target
    served: Served
    user: User
    warnings: list[str] = field(default_factory=list)

    @property
    def key(self) -> ObjectKey:
        return self.key_of(self.target.name)

    def key_of(self, name: str) -> ObjectKey:
        namespace = self.target.namespace if self.served.type.namespaced else ""
        return ObjectKey(self.served.storage, namespace, name)

    def found(self) -> Stored:
        stored = self.backend.store.find(self.key)
        if stored is None:
            raise self.not_found()
        return stored

    def not_found(self, name: str = "") -> NotFound:
        row = self.served.type
        return NotFound.of(row.plural, name or self.target.name, row.group)

    def shown(self) -> Shown:
        return Shown(
            self.served,
            view_from(self.request),
            include_object=self.request.param("includeObject") or "Metadata",
            now=self.backend.clock.now(),
        )


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
        return {}  # a null is an object without anything, as Go reads it
    if not isinstance(obj, dict):
        raise BadRequest(f"couldn't get version/kind; json parse error: the {what} must be a JSON object")
    return obj


def decode_request_kind(request: Request, api_version: str, kind: str) -> JSON:
    """A body of a kind that is asked with and not stored, such as an Eviction; its values have the right types."""
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
    """Refuse JSON nested deeper than anything honest, before anything recursive looks at it."""
    if body.count(b"{") + body.count(b"[") <= DEEPEST:
        return
    depth = 0
    for bracket in _TEXTS.sub(b"", body).translate(None, _ALL_BUT_BRACKETS):
        depth += 1 if bracket in b"[{" else -1
        if depth > DEEPEST:
            raise BadRequest(f"the object is nested deeper than {DEEPEST} levels")


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
