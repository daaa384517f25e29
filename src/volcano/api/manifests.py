"""YAML manifests as kubectl reads them: many documents, lists unrolled, and no surprises from YAML 1.1.

`yes`, `on`, `1:30` and dates stay strings. Aliases are allowed but bounded, and so is everything else.
"""

from __future__ import annotations

import re
from typing import Any

from volcano.api.bounded_yaml import SAFE_LOADER, BoundedYamlError, load_all_yaml
from volcano.api.meta import JSON


class ManifestError(ValueError):
    """The text is not a manifest; the message says which document and where."""


class _KubernetesLoader(SAFE_LOADER):  # type: ignore[misc]
    """YAML with JSON's types only."""


_KubernetesLoader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("tag:yaml.org,2002:bool", r"^(?:true|True|TRUE|false|False|FALSE)$", "tTfF"),
    ("tag:yaml.org,2002:null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    ("tag:yaml.org,2002:int", r"^(?:[-+]?(?:0|[1-9][0-9]*)|0o?[0-7]+|0x[0-9a-fA-F]+)$", "-+0123456789"),
    (
        "tag:yaml.org,2002:float",
        r"^(?:[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)(?:[eE][-+]?[0-9]+)?)$",
        "-+0123456789.",
    ),
    ("tag:yaml.org,2002:merge", r"^(?:<<)$", "<"),
):
    _KubernetesLoader.add_implicit_resolver(_tag, re.compile(_pattern), list(_first))


def load_documents(text: str | bytes, *, source: str = "the manifest") -> list[JSON]:
    """All objects in order. `List` kinds are unrolled; empty documents are skipped."""
    try:
        parsed = load_all_yaml(text, loader=_KubernetesLoader)
    except BoundedYamlError as error:
        raise ManifestError(f"{source} is not YAML within the limits: {error}") from None
    parsed = [document for document in parsed if document is not None]
    places = [(document, f"{source}, document {number}") for number, document in enumerate(parsed, 1)]
    return [each for document, place in places for each in _objects(document, place)]


def _objects(document: Any, where: str) -> list[JSON]:
    if not isinstance(document, dict):
        raise ManifestError(f"{where} is not an object")
    for field in ("apiVersion", "kind"):
        if not isinstance(document.get(field), str) or not document[field]:
            raise ManifestError(f"{where}: {field} is missing")
    if document["kind"].endswith("List") and isinstance(document.get("items"), list):
        return [each for item in document["items"] for each in _objects(item, where)]
    return [document]
