"""Strategy: all that the server knows of one kind, so that verbs and subresources need not know kinds.

The class itself is a built-in kind with nothing particular. Each module beside it overrides what differs for its
kinds, and `strategy_table` lists them; custom resources are in `custom_resources`. Admission is `admitting`,
the columns of `kubectl get` are `schemas.tables`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, ClassVar, Final

import msgspec

from volcano.api import field_errors as says
from volcano.api.copies import copied
from volcano.api.errors import BadRequest, FieldError, MethodNotAllowed, NotFound
from volcano.api.meta import JSON
from volcano.api.names import subdomain_problems
from volcano.api.schemas.openapi_table import schema_name
from volcano.api.scheme import ResourceType
from volcano.embedded.apiserver.kinds.service_addresses import AddressClaim
from volcano.embedded.apiserver.schemas.apply.creation_entries import track_new
from volcano.embedded.apiserver.schemas.builtin.core_defaults import apply_core_defaults
from volcano.embedded.apiserver.schemas.builtin.fitting import fits
from volcano.embedded.apiserver.schemas.builtin.strict_fields import (
    check_types,
    prune_core,
    strict_error,
    strict_messages,
)
from volcano.embedded.apiserver.store.contract import ObjectKey, Store

IMMUTABLE: Final = "field is immutable"
_STATUS_METADATA: Final = ("labels", "annotations", "managedFields")


class AllocationContext(msgspec.Struct, frozen=True):
    """What a strategy may look at when it assigns what only the server can (addresses, accepted names)."""

    store: Store
    names_taken: Callable[[JSON], Mapping[str, str]]
    """Of a CustomResourceDefinition: the names that another resource of its group already has."""
    timestamp: Callable[[], str]
    """The time of the write."""
    addresses: AddressClaim
    """Holds the addresses that the write assigns until it is over."""


class ProxyAddress(msgspec.Struct, frozen=True):
    """Where requests to an object's `proxy` subresource go."""

    host: str
    port: int
    scheme: str
    is_kubelet: bool = False


class Strategy:
    """One resource at one version. A method that is not overridden does what most built-in kinds need."""

    has_generation: ClassVar[bool] = True
    """Whether metadata.generation counts the changes of what is wanted."""
    selectable_fields: Mapping[str, str] = {}
    """The fields that fieldSelector may name besides metadata, each with its text while it is unset."""
    keeps_given_status: ClassVar[bool] = False
    """Whether an object may be created together with its status."""
    initial_status: ClassVar[JSON | None] = None
    """The status of a new object."""
    requires_resource_version: ClassVar[bool] = False
    """Whether a replacement must name the version that it replaces."""
    delete_returns_object: ClassVar[bool] = False
    """Whether the answer to a delete is the object itself, where others are answered with a Status."""
    conversion: JSON | None = None
    """The clientConfig of the webhook that converts between versions; None where they differ in apiVersion alone."""
    has_stored_form: bool = True
    """Whether this version shows objects exactly as they are stored."""
    keeps_other_parts: ClassVar[bool] = False
    """Whether an update leaves the parts that it does not change as they are, so that both objects may share them."""

    def __init__(self, row: ResourceType) -> None:
        self.row = row
        self.storage = row.qualified
        """The name under which the store keeps the objects."""

    # ── names, storage, schemas ──

    @property
    def typed_schema(self) -> Any:
        """The schema that server-side apply and managed fields go by."""
        return self.strategic_schema

    @property
    def strategic_schema(self) -> str | None:
        """The schema of strategic merge patches; None where they are not supported."""
        return schema_name(self.row.group, self.row.version, self.row.kind)

    def name_problems(self, name: str) -> list[str]:
        """What is wrong with a name of this kind."""
        return subdomain_problems(name)

    def field_texts(self, obj: JSON) -> dict[str, str]:
        """The selectable fields of a stored object, as fieldSelector compares them."""
        texts = {}
        for path, unset in self.selectable_fields.items():
            value: Any = obj
            for part in _parts(path):
                value = value.get(part) if isinstance(value, dict) else None
            if value is None:
                texts[path] = unset
            elif type(value) is str:
                texts[path] = value
            else:
                texts[path] = str(value).lower() if isinstance(value, bool) else str(value)
        return texts

    # ── between the version that is stored and the one that is served ──

    def from_stored(self, obj: JSON) -> JSON:
        """A stored object as this version shows it; may change the object it is given."""
        return obj

    def to_stored(self, obj: JSON) -> JSON:
        """An object of this version as it is stored; may change the object it is given."""
        return obj

    # ── shape: kind, fields, types, defaults ──

    def check_kind(self, obj: JSON, *, is_known: Callable[[str, str, str], bool]) -> None:
        """Refuse a body of another kind than the URL's; `is_known` tests whether a (group, version, kind) is served."""
        row, kind, version = self.row, obj["kind"], obj["apiVersion"]
        if kind == row.kind and version == row.api_version:
            return
        group, _, short = version.rpartition("/")
        why = f"converting ({short}.{kind}) to ({row.group or 'core'}.{row.kind}): unknown conversion"
        if not is_known(group, short, kind):
            why = f'no kind "{kind}" is registered for version "{version}" in scheme "pkg/runtime/scheme.go:111"'
        raise BadRequest(f'{kind} in version "{short}" cannot be handled as a {row.kind}: {why}')

    def shape_new(self, obj: JSON, *, mode: str, duplicates: Sequence[str] = ()) -> tuple[JSON, list[str]]:
        """A new object without unknown fields and with values of the right types; warnings as the mode asks for."""
        if not duplicates and self.fits(obj):
            return obj, []
        warnings = self.check_fields(obj, mode=mode, duplicates=duplicates)
        self.check_types(obj)
        return obj, warnings

    def fits(self, obj: JSON) -> bool:
        """Whether the object is known to have no unknown field, no null and no value of a wrong type."""
        return fits(self.row, obj)

    def check_fields(
        self, obj: JSON, *, mode: str, duplicates: Sequence[str] = (), unknown: Sequence[str] = ()
    ) -> list[str]:
        """Drop unknown fields. Strict refuses them, Warn returns warnings, Ignore returns none."""
        unknown = [*self.prune(obj), *unknown]
        if mode == "Ignore" or not (unknown or duplicates):
            return []
        messages = strict_messages(unknown, list(duplicates))
        if mode == "Strict":
            raise self.strict_error(messages)
        return messages

    def prune(self, obj: JSON) -> list[str]:
        """Drop unknown fields, in place; their paths."""
        return prune_core(self.row, obj)

    def check_types(self, obj: JSON) -> None:
        """Refuse values that cannot be what their field is."""
        check_types(self.row, obj)

    def strict_error(self, messages: list[str]) -> BadRequest:
        kind = self.row.kind
        error = strict_error(messages)
        return BadRequest(f'{kind} in version "{self.row.version}" cannot be handled as a {kind}: {error}')

    def apply_defaults(self, obj: JSON) -> None:
        """Fill in what is missing, in place."""
        apply_core_defaults(self.row, obj)

    # ── create and update ──

    def prepare_create(self, obj: JSON) -> None:
        """Set what the server alone decides about a new object."""
        if self.row.has_status and not self.keeps_given_status:
            obj.pop("status", None)
        if self.initial_status is not None:
            obj["status"] = copied(self.initial_status)

    def default_new(self, obj: JSON) -> None:
        """The defaults of a new object, after it was prepared."""
        self.apply_defaults(obj)

    def prepare_update(self, obj: JSON, old: JSON) -> None:
        """Keep what an update may leave out."""

    def prepare_status_update(self, obj: JSON, old: JSON) -> None:
        """Leave of the given object its status, and what else an update of the status may change."""
        kept = {field: obj["metadata"][field] for field in _STATUS_METADATA if field in obj["metadata"]}
        keep_only_status(obj, old)
        for field in ("labels", "annotations"):
            obj["metadata"].pop(field, None)
        obj["metadata"].update(kept)

    def wanted_state(self, obj: JSON) -> JSON:
        """The part of an object whose changes its generation counts."""
        return {field: value for field, value in obj.items() if field not in ("metadata", "status")}

    def track_create(self, obj: JSON, *, manager: str, now: datetime) -> JSON:
        """The new object with managedFields that name its manager."""
        return track_new(obj, manager=manager, schema=self.typed_schema, now=now)

    # ── validation ──

    def errors(self, obj: JSON, old: JSON | None, *, is_status: bool) -> Sequence[FieldError]:
        """All that is wrong with an object, itself or as a change of the old one."""
        for part in ("spec", "status"):
            if not isinstance(obj.get(part, {}), dict | None):
                return [says.type_invalid(part, obj[part], "must be an object")]
        if old is None:
            return self.validate(obj)
        return self.validate_status(obj, old) if is_status else self.validate_update(obj, old)

    def validate(self, obj: JSON) -> Sequence[FieldError]:
        return []

    def validate_update(self, obj: JSON, old: JSON) -> Sequence[FieldError]:
        return self.validate(obj)

    def validate_status(self, obj: JSON, old: JSON) -> Sequence[FieldError]:
        return []

    def prepare_part_update(self, obj: JSON, old: JSON, part: str) -> None:
        """Put back what an update by this subresource leaves alone; `old` may be used up."""

    def validate_part(self, obj: JSON, old: JSON, part: str) -> Sequence[FieldError]:
        """What is wrong with an update by a subresource other than `status`."""
        return self.errors(obj, old, is_status=False) if part == "scale" else []

    def allocate(self, obj: JSON, old: JSON | None, context: AllocationContext) -> None:
        """Assign to a valid object what only the server can; refuse what is taken."""

    # ── deletion ──

    def grace_seconds(self, obj: JSON, asked: int | None) -> int:
        """How long the object stays after its deletion was asked for."""
        return 0

    def is_held(self, obj: JSON) -> bool:
        """Whether something besides metadata.finalizers keeps a deleted object."""
        return False

    def mark_deleting(self, obj: JSON) -> None:
        """The object is being deleted and still held."""

    def mark_deleted(self, obj: JSON, now: str) -> None:
        """The object leaves the store in this state."""

    # ── subresources ──

    def proxy_address(self, store: Store, namespace: str, name: str, port: str) -> ProxyAddress:
        raise MethodNotAllowed("the server does not allow this method on the requested resource")


@lru_cache(maxsize=1024)
def _parts(path: str) -> tuple[str, ...]:
    return tuple(path.split("."))


def keep_only_status(obj: JSON, old: JSON) -> None:
    """Make the object the old one with the given status; they share the other parts, except for the metadata."""
    status = obj.get("status")
    obj.clear()
    obj.update(old)
    obj["metadata"] = dict(old["metadata"])
    obj.pop("status", None)
    if status is not None:
        obj["status"] = status


def existing_object(store: Store, key: ObjectKey) -> JSON:
    """The stored object; NotFound when there is none."""
    stored = store.find(key)
    if stored is None:
        raise NotFound.of(key.resource, key.name)
    found: JSON = msgspec.json.decode(stored.raw)
    return found
