"""A schema in the smaller vocabulary of Swagger 2.0: what it cannot express is left out."""

from __future__ import annotations

from typing import Final

from volcano.api.meta import JSON

V3_REFERENCE: Final = "#/components/schemas/"
V2_REFERENCE: Final = "#/definitions/"
MAX_DEPTH: Final = 128
_DROPPED: Final = (
    "anyOf", "oneOf", "not", "nullable", "default", "example", "externalDocs", "x-kubernetes-validations",
    "x-kubernetes-embedded-resource",
)  # fmt: skip


def definition_from(schema: JSON, depth: int = 0) -> JSON:
    """One definition. Where values may be of several types, no type is given, so that clients accept them all."""
    if depth > MAX_DEPTH:
        return {}
    if isinstance(schema.get("$ref"), str):
        return {"$ref": schema["$ref"].replace(V3_REFERENCE, V2_REFERENCE)}
    reference = _only_reference(schema)
    if reference:
        return {"$ref": reference.replace(V3_REFERENCE, V2_REFERENCE)}
    if "oneOf" in schema and "properties" not in schema:
        found: JSON = {"type": "string"}
        return {**found, "format": schema["format"]} if "format" in schema else found
    answer = {key: value for key, value in schema.items() if key not in _DROPPED and key != "allOf"}
    if schema.get("x-kubernetes-int-or-string") is True or schema.get("nullable") is True:
        for key in ("type", "items", "properties", "additionalProperties", "format"):
            answer.pop(key, None)
        return answer
    if schema.get("x-kubernetes-preserve-unknown-fields") is True:
        return {"x-kubernetes-preserve-unknown-fields": True, **({"type": "object"} if depth == 0 else {})}
    if isinstance(answer.get("properties"), dict):
        answer["properties"] = {name: definition_from(item, depth + 1) for name, item in answer["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(answer.get(key), dict):
            answer[key] = definition_from(answer[key], depth + 1)
    return answer


def _only_reference(schema: JSON) -> str:
    parts = schema.get("allOf")
    if isinstance(parts, list) and len(parts) == 1 and isinstance(parts[0], dict):
        return str(parts[0].get("$ref", ""))
    return ""
