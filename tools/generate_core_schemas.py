"""Make src/volcano/api/data/core_schemas.json.z: the schemas of Kubernetes' own kinds, without descriptions.

Run by developers when the project moves to another Kubernetes release; users never need it:

    go mod download k8s.io/kubernetes@v1.36.3
    python tools/generate_core_schemas.py $(go env GOMODCACHE)/k8s.io/kubernetes@v1.36.3

It reads api/openapi-spec/v3/*.json, keeps the kinds of volcano.api.scheme.BUILT_IN, the few request kinds below and all
they refer to, writes a reference as {"$ref": "<name>"}, and drops descriptions and the defaults that only restate
Go's zero values of required fields. A struct that is no pointer, and so always present in what Kubernetes stores, is
marked "x-embedded". The answer is sorted, so a second run gives the same bytes.
"""

from __future__ import annotations

import json
import sys
import zlib
from pathlib import Path
from typing import Any

from volcano.api.scheme import BUILT_IN

TARGET = Path(__file__).parent.parent / "src/volcano/api/data/core_schemas.json.z"

REQUEST_KINDS = (
    ("", "v1", "Binding"),
    ("", "v1", "ComponentStatus"),
    ("", "v1", "Status"),
    ("", "v1", "DeleteOptions"),
    ("", "v1", "APIResourceList"),
    ("", "v1", "APIVersions"),
    ("", "v1", "APIGroup"),
    ("", "v1", "APIGroupList"),
    ("autoscaling", "v1", "Scale"),
    ("policy", "v1", "Eviction"),
    ("authentication.k8s.io", "v1", "TokenRequest"),
    ("authentication.k8s.io", "v1", "TokenReview"),
    ("authentication.k8s.io", "v1", "SelfSubjectReview"),
    ("authorization.k8s.io", "v1", "SubjectAccessReview"),
    ("authorization.k8s.io", "v1", "SelfSubjectAccessReview"),
    ("authorization.k8s.io", "v1", "LocalSubjectAccessReview"),
    ("authorization.k8s.io", "v1", "SelfSubjectRulesReview"),
)

REFERENCE = "#/components/schemas/"


def main(module: Path) -> None:
    everything = read_schemas(module / "api/openapi-spec/v3")
    wanted = {(row.group, row.version, row.kind) for row in BUILT_IN} | set(REQUEST_KINDS)
    wanted |= {(group, version, kind + "List") for group, version, kind in wanted}
    roots = [name for name, schema in everything.items() if any(kind in wanted for kind in kinds_of(schema))]
    table = {
        "release": module.name.rpartition("@")[2],
        "schemas": {name: compact(everything[name]) for name in sorted(reachable(roots, everything))},
    }
    text = json.dumps(table, separators=(",", ":"), sort_keys=True).encode()
    TARGET.write_bytes(zlib.compress(text, 9))
    print(f"{len(table['schemas'])} schemas, {len(text)} bytes, {TARGET.stat().st_size} compressed")


def read_schemas(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for file in sorted(folder.glob("*_openapi.json")):
        found.update(json.loads(file.read_text()).get("components", {}).get("schemas", {}))
    return found


def kinds_of(schema: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(k["group"], k["version"], k["kind"]) for k in schema.get("x-kubernetes-group-version-kind", [])]


def reachable(roots: list[str], everything: dict[str, Any]) -> set[str]:
    seen: set[str] = set()
    open_names = list(roots)
    while open_names:
        name = open_names.pop()
        if name not in seen:
            seen.add(name)
            open_names += references(everything[name])
    return seen


def references(value: Any) -> list[str]:
    if isinstance(value, list):
        return [name for item in value for name in references(item)]
    if not isinstance(value, dict):
        return []
    target = value.get("$ref")
    if isinstance(target, str):
        return [target.removeprefix(REFERENCE)]
    return [name for item in value.values() for name in references(item)]


def compact(schema: dict[str, Any], *, required: bool = False) -> dict[str, Any]:
    """One schema without prose; the `allOf` around a single reference, which only carries a default, is unfolded."""
    if "$ref" in schema:
        return {"$ref": schema["$ref"].removeprefix(REFERENCE)}
    short = {k: v for k, v in schema.items() if k not in ("description", "allOf", "x-kubernetes-unions")}
    if "allOf" in schema:
        short["$ref"] = schema["allOf"][0]["$ref"].removeprefix(REFERENCE)
    if short.get("default") == {} and "$ref" in short:
        short["x-embedded"] = True
    if "default" in short and (required or short["default"] in ({}, [])):
        del short["default"]
    if "items" in schema:
        short["items"] = compact(schema["items"], required=True)
    if isinstance(schema.get("additionalProperties"), dict):
        short["additionalProperties"] = compact(schema["additionalProperties"], required=True)
    if "properties" in schema:
        names = schema.get("required", [])
        short["properties"] = {k: compact(v, required=k in names) for k, v in schema["properties"].items()}
    if "x-kubernetes-group-version-kind" in schema:
        kinds = schema["x-kubernetes-group-version-kind"]
        if len(kinds) > 3:  # the kinds every group repeats, such as DeleteOptions
            short["x-kubernetes-group-version-kind"] = [k for k in kinds if not k["group"] and k["version"] == "v1"]
    return short


if __name__ == "__main__":
    main(Path(sys.argv[1]))
