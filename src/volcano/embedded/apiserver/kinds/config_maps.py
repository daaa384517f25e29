"""ConfigMaps and Secrets: keys, size, immutability; a Secret's stringData becomes data."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import ClassVar, Final

from volcano.api import field_errors as says
from volcano.api.errors import FieldError
from volcano.api.meta import JSON
from volcano.api.names import config_key_problems
from volcano.embedded.apiserver.kinds.strategy import IMMUTABLE, Strategy

MAX_CONTENT_BYTES: Final = 2**20


class ConfigMaps(Strategy):
    has_generation = False
    content_fields: ClassVar[tuple[str, ...]] = ("data", "binaryData")

    def validate(self, obj: JSON) -> list[FieldError]:
        errors: list[FieldError] = []
        size = 0
        for field in self.content_fields:
            entries = obj.get(field)
            if entries is None:
                continue
            if not isinstance(entries, dict) or not all(isinstance(v, str) for v in entries.values()):
                errors.append(says.type_invalid(field, entries, "must be a map of strings"))
                continue
            for key, value in entries.items():
                errors += [says.invalid(f"{field}[{key}]", key, problem) for problem in config_key_problems(key)]
                size += len(value)
        if size > MAX_CONTENT_BYTES:
            errors.append(says.too_long("", MAX_CONTENT_BYTES))
        return errors

    def validate_update(self, obj: JSON, old: JSON) -> list[FieldError]:
        errors, why = self.validate(obj), "field is immutable when `immutable` is set"
        if not old.get("immutable"):
            return errors
        if not obj.get("immutable"):
            errors.append(says.forbidden("immutable", why))
        return errors + [says.forbidden(f, why) for f in self.content_fields if obj.get(f) != old.get(f)]


class Secrets(ConfigMaps):
    content_fields = ("data",)
    selectable_fields: Mapping[str, str] = {"type": ""}

    def prepare_create(self, obj: JSON) -> None:
        super().prepare_create(obj)
        _move_texts(obj)

    def prepare_update(self, obj: JSON, old: JSON) -> None:
        _move_texts(obj)
        if not obj.get("type"):
            obj["type"] = old.get("type")

    def validate_update(self, obj: JSON, old: JSON) -> list[FieldError]:
        errors = super().validate_update(obj, old)
        if old.get("type") != obj.get("type"):
            errors.append(says.invalid("type", obj.get("type"), IMMUTABLE))
        return errors


def _move_texts(obj: JSON) -> None:
    """stringData is for writing only: it is stored as data."""
    texts = obj.pop("stringData", None)
    if isinstance(texts, dict) and texts:
        encoded = {key: base64.b64encode(str(text).encode()).decode() for key, text in texts.items()}
        obj["data"] = {**(obj.get("data") or {}), **encoded}
