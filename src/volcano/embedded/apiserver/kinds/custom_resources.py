"""Custom resources: pruned, defaulted and validated by the structural schema of their definition."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from volcano.api.errors import BadRequest, FieldError, Invalid
from volcano.api.meta import JSON
from volcano.api.scheme import ResourceType
from volcano.embedded.apiserver.kinds.strategy import Strategy, keep_only_status
from volcano.embedded.apiserver.schemas.builtin.strict_fields import strict_error
from volcano.embedded.apiserver.schemas.crd.structural import StructuralSchema


class CustomResource(Strategy):
    """One version of a custom kind. Without a conversion webhook, versions differ only in their apiVersion."""

    requires_resource_version = True
    keeps_other_parts = True

    def __init__(
        self,
        row: ResourceType,
        schema: StructuralSchema,
        *,
        storage_version: str,
        selectable_fields: Sequence[str],
        conversion: JSON | None = None,
    ) -> None:
        super().__init__(row)
        self._schema = schema
        self.conversion = conversion
        self._stored_as = f"{row.group}/{storage_version}"
        self.has_stored_form = row.version == storage_version
        self.selectable_fields: Mapping[str, str] = dict.fromkeys(selectable_fields, "")

    @property
    def typed_schema(self) -> StructuralSchema:
        return self._schema

    @property
    def strategic_schema(self) -> None:
        return None

    def from_stored(self, obj: JSON) -> JSON:
        obj["apiVersion"] = self.row.api_version
        return obj

    def to_stored(self, obj: JSON) -> JSON:
        obj["apiVersion"] = self._stored_as
        return obj

    def check_kind(self, obj: JSON, *, is_known: Callable[[str, str, str], bool]) -> None:
        row, kind, version = self.row, obj["kind"], obj["apiVersion"]
        if version != row.api_version:
            raise BadRequest(
                f"the API version in the data ({version}) does not match the expected API version ({row.api_version})"
            )
        if kind != row.kind:
            name = (obj.get("metadata") or {}).get("name") or ""
            error = FieldError("kind", f'Invalid value: "{kind}": must be {row.kind}')
            raise Invalid.of(kind, name, [error], row.group)

    def prune(self, obj: JSON) -> list[str]:
        return self._schema.prune(obj)

    def fits(self, obj: JSON) -> bool:
        return False  # the pruning by the definition's schema has to look

    def check_types(self, obj: JSON) -> None:
        """Wrong types are reported by the validation, with all other errors."""

    def strict_error(self, messages: list[str]) -> BadRequest:
        return strict_error(messages)

    def apply_defaults(self, obj: JSON) -> None:
        self._schema.default(obj)

    def prepare_status_update(self, obj: JSON, old: JSON) -> None:
        given = obj["metadata"]
        keep_only_status(obj, old)
        if "managedFields" in given:
            obj["metadata"]["managedFields"] = given["managedFields"]

    def wanted_state(self, obj: JSON) -> JSON:
        ignored = ("metadata", "status") if self.row.has_status else ("metadata",)
        return {field: value for field, value in obj.items() if field not in ignored}

    def errors(self, obj: JSON, old: JSON | None, *, is_status: bool) -> Sequence[FieldError]:
        return self._schema.validate(obj, old=old)
