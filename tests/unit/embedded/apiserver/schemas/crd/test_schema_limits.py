"""What one definition may cost: parts, patterns and rules are counted over all its versions."""

from __future__ import annotations

from typing import Any

import pytest

from volcano.embedded.apiserver.schemas.crd import schema_limits
from volcano.embedded.apiserver.schemas.crd.definition_validation import MAX_SCHEMA_ERRORS, validate_crd


def definition(*schemas: dict[str, Any]) -> dict[str, Any]:
    names = {"plural": "things", "kind": "Thing", "singular": "thing", "listKind": "ThingList"}
    versions = [
        {"name": f"v{index}", "served": True, "storage": index == 0, "schema": {"openAPIV3Schema": schema}}
        for index, schema in enumerate(schemas)
    ]
    spec = {"group": "x.example.com", "scope": "Namespaced", "names": names, "versions": versions}
    return {"metadata": {"name": "things.x.example.com"}, "spec": spec}


def strings(**keywords: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": {"type": "string", **keywords}}}


def patterns(count: int, first: int = 0) -> list[dict[str, Any]]:
    return [{"pattern": f"^a{number}$"} for number in range(first, first + count)]


def refusals(*schemas: dict[str, Any]) -> list[str]:
    return [f"{error.path}: {error.message}" for error in validate_crd(definition(*schemas))]


ROOT = "spec.validation.openAPIV3Schema"


def test_ordinary_definitions_are_within_the_limits():
    schema = strings(anyOf=patterns(schema_limits.MAX_DIFFERENT_PATTERNS))

    assert refusals(schema) == []


def test_a_pattern_counts_once_however_often_it_is_used():
    properties = {f"p{number}": {"type": "string", "pattern": "^a$"} for number in range(2_000)}

    assert refusals({"type": "object", "properties": properties}) == []


@pytest.mark.parametrize(
    ("schema", "place", "text"),
    [
        (strings(anyOf=patterns(30_000)), "properties[a].anyOf[1000].pattern", "1000 different patterns"),
        (strings(anyOf=[{"pattern": rf"\pL{{300}}{n}"} for n in range(50)]), "properties[a].anyOf[5].pattern", "larger together"),
        ({"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(50_001)}}, "properties[p49999]", "at most 50000"),
        ({"type": "object", "x-kubernetes-validations": [{"rule": f"self.a != {n}"} for n in range(1_001)]}, "x-kubernetes-validations[1000]", "1000 rules"),
        ({"type": "object", "x-kubernetes-validations": [{"rule": "self.a != '" + "x" * 15_000 + f"{n}'"} for n in range(9)]}, "x-kubernetes-validations[8]", "131072 characters"),
    ],
    ids=["patterns", "large patterns", "parts", "rules", "characters of rules"],
)  # fmt: skip
def test_more_than_the_server_compiles_within_a_second_is_refused_at_its_place(
    schema: dict[str, Any], place: str, text: str
):
    found = refusals(schema)

    assert len(found) == 1
    assert found[0].startswith(f"{ROOT}.{place}: ") and text in found[0]


def test_versions_count_together():
    half = schema_limits.MAX_DIFFERENT_PATTERNS // 2 + 1
    found = refusals(strings(anyOf=patterns(half)), strings(anyOf=patterns(half, first=half)))

    assert [each.partition(":")[0] for each in found] == [
        f"spec.versions[1].schema.openAPIV3Schema.properties[a].anyOf[{half - 2}].pattern"
    ]


def test_the_list_of_errors_ends():
    wrong = {"type": "object", "properties": {f"p{number}": {"type": "strin"} for number in range(2_000)}}

    assert len(refusals(wrong)) == MAX_SCHEMA_ERRORS
