"""Fields of a manifest that its kind does not have, or that have another type, each with its line and path.

Only what schemas say; values are judged by the API server. Kinds that are not known here pass.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import yaml

from volcano.api.bounded_yaml import compose_all_yaml
from volcano.api.meta import JSON
from volcano.api.nearest_words import did_you_mean
from volcano.api.schemas.crds import crd_manifests
from volcano.api.schemas.openapi_table import OBJECT_META, core_schema, core_table, schema_name

MAX_PROBLEMS: Final = 50
_TYPES: Final = {"object": yaml.MappingNode, "array": yaml.SequenceNode}
_WORDS: Final = {yaml.MappingNode: "an object", yaml.SequenceNode: "a list", yaml.ScalarNode: "a single value"}
_NULL: Final = ("", "~", "null", "Null", "NULL")


def field_problems(text: str | bytes, *, source: str) -> list[str]:
    """`job.yaml:4: spec.minAvailabel: unknown field; did you mean minAvailable?` for each, in the order of the file."""
    walk = _Walk(source)
    for document in compose_all_yaml(text):
        walk.document(document)
    if len(walk.problems) > MAX_PROBLEMS:
        return [*walk.problems[:MAX_PROBLEMS], f"{source}: {len(walk.problems) - MAX_PROBLEMS} more"]
    return walk.problems


@cache
def _own_schemas() -> dict[tuple[str, str], JSON]:
    return {
        (f"{definition['spec']['group']}/{version['name']}", definition["spec"]["names"]["kind"]): version["schema"][
            "openAPIV3Schema"
        ]
        for definition in crd_manifests()
        for version in definition["spec"]["versions"]
    }


def _schema_of(api_version: str, kind: str) -> JSON | None:
    own = _own_schemas().get((api_version, kind))
    if own is not None:
        return own
    group, _, version = api_version.rpartition("/")
    name = schema_name(group, version, kind)
    return core_schema(name) if name is not None else None


class _Walk:
    """Compares nodes with schemas and collects what does not fit."""

    def __init__(self, source: str) -> None:
        self._source = source
        self.problems: list[str] = []

    def document(self, node: Any) -> None:
        fields = _entries(node)
        api_version, kind = (_text(fields.get(name)) for name in ("apiVersion", "kind"))
        if kind.endswith("List") and isinstance(fields.get("items"), yaml.SequenceNode):
            for item in fields["items"].value:
                self.document(item)
            return
        schema = _schema_of(api_version, kind)
        if schema is not None:
            self._value(node, schema, "")

    def _value(self, node: Any, schema: JSON, path: str) -> None:
        schema = _resolved(schema, path)
        wanted = _TYPES.get(schema.get("type", ""), yaml.ScalarNode if "type" in schema else None)
        if _is_null(node) or wanted is None:
            return
        if not isinstance(node, wanted):
            self._report(node, f"{path}: must be {_WORDS[wanted]}, not {_WORDS.get(type(node), 'something else')}")
        elif isinstance(node, yaml.MappingNode):
            self._object(node, schema, path)
        elif isinstance(node, yaml.SequenceNode):
            for index, item in enumerate(node.value):
                self._value(item, schema.get("items") or {}, f"{path}[{index}]")

    def _object(self, node: Any, schema: JSON, path: str) -> None:
        known: JSON = schema.get("properties") or {}
        others = schema.get("additionalProperties")
        is_open = not known or schema.get("x-kubernetes-preserve-unknown-fields")
        for key, value in node.value:
            name = _text(key)
            place = f"{path}.{name}" if path else name
            if name in known:
                self._value(value, known[name], place)
            elif isinstance(others, dict):
                self._value(value, others, place)
            elif not is_open and name != "<<":
                self._report(key, f"{place}: unknown field{did_you_mean(name, known)}")

    def _report(self, node: Any, problem: str) -> None:
        self.problems.append(f"{self._source}:{node.start_mark.line + 1}: {problem}")


def _resolved(schema: JSON, path: str) -> JSON:
    """Metadata is Kubernetes' own everywhere: definitions leave out what the server does not keep in templates."""
    if path == "metadata" or path.lower().endswith("template.metadata"):
        return core_schema(OBJECT_META)
    return core_table().resolve(schema)


def _entries(node: Any) -> dict[str, Any]:
    return {_text(key): value for key, value in node.value} if isinstance(node, yaml.MappingNode) else {}


def _text(node: Any) -> str:
    return str(node.value) if isinstance(node, yaml.ScalarNode) else ""


def _is_null(node: Any) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.style is None and node.value in _NULL
