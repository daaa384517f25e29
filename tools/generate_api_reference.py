"""Write docs/reference/api.md: every field of Volcano's kinds with its type, limits and description, from the structs.

python tools/generate_api_reference.py           write the page
python tools/generate_api_reference.py --check   fail if the page is not up to date
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from generated_page import write_or_check

from volcano.api.meta import JSON
from volcano.api.schemas.crds import crd_manifests

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "api.md"
INTRO = """\
# API fields

Generated from the structs in `volcano/api` by `tools/generate_api_reference.py`; `kubectl explain queue.spec` prints
the same sentences. Fields inside Kubernetes' own types (pod templates, claims) are not listed.
"""
EMBEDDED = "of Kubernetes' "
LIMITS = ("default", "enum", "minimum", "maximum", "minItems", "maxItems", "minLength", "maxLength")


def page() -> str:
    return "\n".join([INTRO, *(line for manifest in crd_manifests() for line in _kind(manifest))]).rstrip() + "\n"


def _kind(manifest: JSON) -> Iterator[str]:
    spec = manifest["spec"]
    (version,) = spec["versions"]
    schema = version["schema"]["openAPIV3Schema"]
    yield f"## {spec['names']['kind']}\n"
    yield f"`{spec['group']}/{version['name']}`, {spec['scope'].lower()}. {schema['description']}\n"
    yield "| field | type | description |\n|---|---|---|"
    yield from _fields(schema, "")
    yield ""


def _fields(schema: JSON, path: str) -> Iterator[str]:
    required = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        if not path and name in ("apiVersion", "kind", "metadata"):
            continue
        here = f"{path}{name}"
        yield f"| `{here}` | {_type(field)} | {_text(field, name in required)} |"
        inner, suffix = _inner(field)
        if not _is_kubernetes(inner):
            yield from _fields(inner, f"{here}{suffix}.")


def _inner(field: JSON) -> tuple[JSON, str]:
    if field.get("type") == "array":
        return field["items"], "[]"
    if isinstance(field.get("additionalProperties"), dict):
        return field["additionalProperties"], ".*"
    return field, ""


def _is_kubernetes(schema: JSON) -> bool:
    return any(EMBEDDED in field.get("description", "") for field in schema.get("properties", {}).values())


def _type(field: JSON) -> str:
    if "x-kubernetes-int-or-string" in field:
        return "quantity"
    if field.get("type") == "array":
        return f"list of {_type(field['items'])}"
    if isinstance(field.get("additionalProperties"), dict):
        return f"map of {_type(field['additionalProperties'])}"
    if field.get("format") == "date-time":
        return "time"
    return str(field.get("type", "any"))


def _text(field: JSON, required: bool) -> str:
    limits = [f"{key} {_value(field[key])}" for key in LIMITS if key in field]
    if required:
        limits.insert(0, "required")
    ending = f" ({'; '.join(limits)})" if limits else ""
    return str(field["description"]).replace("|", "\\|") + ending


def _value(value: object) -> str:
    return ", ".join(f"`{item}`" for item in value) if isinstance(value, list) else f"`{value}`"


if __name__ == "__main__":
    sys.exit(write_or_check(PAGE, page()))
