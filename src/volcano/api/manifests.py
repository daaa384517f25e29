"""YAML manifests as kubectl reads them: many documents, lists unrolled, and no surprises from YAML 1.1.

`yes`, `on`, `1:30` and dates stay strings. Aliases are allowed but bounded, and so is everything else.
"""

from __future__ import annotations

import re
from typing import Any, Final

import yaml

from volcano.api.meta import JSON

MAX_MANIFEST_BYTES: Final = 3 * 1024 * 1024
MOST_DOCUMENTS: Final = 1000
MAX_NODES: Final = 500_000
MAX_DEPTH: Final = 100


class ManifestError(ValueError):
    """The text is not a manifest; the message says which document and where."""


_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _KubernetesLoader(_Loader):  # type: ignore[misc]
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


def _construct_int(loader: Any, node: Any) -> int:
    text = loader.construct_scalar(node)
    if text.startswith("0x"):
        return int(text, 16)
    return int(text, 8) if text.startswith("0") and text != "0" else int(text)  # 0644 is a file mode


def _construct_float(loader: Any, node: Any) -> float:
    return float(loader.construct_scalar(node))


_KubernetesLoader.add_constructor("tag:yaml.org,2002:int", _construct_int)
_KubernetesLoader.add_constructor("tag:yaml.org,2002:float", _construct_float)


def load_documents(text: str | bytes, *, source: str = "the manifest") -> list[JSON]:
    """All objects in order. `List` kinds are unrolled; empty documents are skipped."""
    try:
        raw = text.encode() if isinstance(text, str) else text
    except UnicodeEncodeError as error:
        raise ManifestError(f"{source} is not text: {error}") from error
    if len(raw) > MAX_MANIFEST_BYTES:
        raise ManifestError(f"{source} has {len(raw)} bytes, more than the limit of {MAX_MANIFEST_BYTES}")
    try:
        _refuse_deep_nesting(raw, source)
        parsed = list(_bounded(yaml.load_all(raw, Loader=_KubernetesLoader), source))
    except yaml.YAMLError as error:
        raise ManifestError(f"{source} is not YAML: {_place(error)}") from error
    except RecursionError as error:
        raise ManifestError(f"{source} is nested too deeply") from error
    places = [(document, f"{source}, document {number}") for number, document in enumerate(parsed, 1)]
    return [each for document, place in places for each in _objects(document, place)]


def _refuse_deep_nesting(raw: bytes, source: str) -> None:
    """The C parser recurses on the C stack, which overflows; events come without recursion, so count those first."""
    if sum(raw.count(mark) for mark in (b"[", b"{", b"- ", b"? ", b": ")) <= MAX_DEPTH:
        return
    depth = 0
    for event in yaml.parse(raw, Loader=_KubernetesLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise ManifestError(f"{source} is nested too deeply")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _bounded(documents: Any, source: str) -> Any:
    for number, document in enumerate(documents):
        if number >= MOST_DOCUMENTS:
            raise ManifestError(f"{source} has more than {MOST_DOCUMENTS} documents")
        if document is not None:
            _measure(document, source)
            yield document


def _measure(document: Any, source: str) -> None:
    """Aliases can make a small text huge; count what a walk would see, and give up early."""
    seen, waiting = 0, [(document, 0)]
    while waiting:
        value, depth = waiting.pop()
        seen += 1
        if seen > MAX_NODES or depth > MAX_DEPTH:
            raise ManifestError(f"{source} is too large or nested too deeply once its aliases are followed")
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        waiting.extend((each, depth + 1) for each in inner)


def _objects(document: Any, where: str) -> list[JSON]:
    if not isinstance(document, dict):
        raise ManifestError(f"{where} is not an object")
    for field in ("apiVersion", "kind"):
        if not isinstance(document.get(field), str) or not document[field]:
            raise ManifestError(f"{where}: {field} is missing")
    if document["kind"].endswith("List") and isinstance(document.get("items"), list):
        return [each for item in document["items"] for each in _objects(item, where)]
    return [document]


def _place(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error)
    return f"line {mark.line + 1}, column {mark.column + 1}: {problem}" if mark is not None else problem
