"""YAML that others wrote, read within bounds: the only module that parses YAML.

libyaml's loader recurses on the C stack, which a few kilobytes of `[` overflow, and aliases make a small text huge.
Its events come without recursion, so a first pass counts depth and nodes with aliases followed; then objects are built.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import yaml

MAX_YAML_BYTES: Final = 3 * 1024 * 1024
MAX_YAML_NODES: Final = 500_000
"""Values and keys, those behind aliases counted each time."""
MAX_YAML_DEPTH: Final = 100
MAX_YAML_DOCUMENTS: Final = 1000
MAX_TAG_DIRECTIVES: Final = 100
"""libyaml compares each with all before it, and nothing else runs meanwhile."""
_TAG_DIRECTIVES: Final = tuple("%TAG".encode(coding) for coding in ("utf-8", "utf-16-le", "utf-16-be"))

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class SafeLoader(_Loader):  # type: ignore[misc]
    """YAML 1.1 without numbers to the base of 60, which take quadratic time, and without dates: both stay strings."""


SafeLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in rows if tag.rpartition(":")[2] not in ("int", "float", "timestamp")]
    for first, rows in _Loader.yaml_implicit_resolvers.items()
}
for _tag, _pattern in (
    ("int", r"^[-+]?(?:0b[0-1_]+|0o?[0-7_]+|0|[1-9][0-9_]*|0x[0-9a-fA-F_]+)$"),
    (
        "float",
        r"^(?:[-+]?(?:[0-9][0-9_]*)\.[0-9_]*(?:[eE][-+]?[0-9]+)?|[-+]?\.[0-9][0-9_]*(?:[eE][-+]?[0-9]+)?"
        r"|[-+]?[0-9]+[eE][-+]?[0-9]+|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$",
    ),
):
    SafeLoader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), list("-+0123456789."))


def _construct_int(loader: Any, node: Any) -> int | float:
    """Above 64 bits it is a float, as in Go: many such integers as keys of one mapping could all have the same hash."""
    text = loader.construct_scalar(node).replace("_", "")
    sign, digits = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    if digits[:2] in ("0b", "0x", "0o"):
        value = sign * int(digits, 0)
    else:
        value = sign * int(digits, 8 if digits.startswith("0") and digits != "0" else 10)  # 0644 is a file mode
    return value if value.bit_length() <= 64 else float(value)


def _construct_float(loader: Any, node: Any) -> float:
    text = loader.construct_scalar(node).replace("_", "").lower()
    return float(text.replace(".inf", "inf").replace(".nan", "nan"))


SafeLoader.add_constructor("tag:yaml.org,2002:int", _construct_int)
SafeLoader.add_constructor("tag:yaml.org,2002:float", _construct_float)
SafeLoader.add_constructor("tag:yaml.org,2002:timestamp", lambda loader, node: loader.construct_scalar(node))

SAFE_LOADER: Final[Any] = SafeLoader
TEXT_LOADER: Final[Any] = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
"""Every scalar is a string."""


class BoundedYamlError(ValueError):
    """The text is not YAML, or is larger or deeper than allowed; the message says where."""


def load_yaml(text: str | bytes, *, loader: Any = SAFE_LOADER, max_nodes: int = MAX_YAML_NODES) -> Any:
    """The one document of a text, None for an empty one; BoundedYamlError for anything else."""
    found = load_all_yaml(text, loader=loader, max_nodes=max_nodes)
    if len(found) > 1:
        raise BoundedYamlError("expected a single document, but found another")
    return found[0] if found else None


def load_all_yaml(
    text: str | bytes, *, loader: Any = SAFE_LOADER, max_nodes: int = MAX_YAML_NODES, allow_aliases: bool = True
) -> list[Any]:
    """All documents of a text, built only after the whole text has been found to be within bounds."""
    return _within_bounds(yaml.load_all, text, loader, _Measure(max_nodes, allow_aliases))


def compose_all_yaml(text: str | bytes) -> list[Any]:
    """The documents of a text as nodes, which have the places of keys and values; within the same bounds."""
    return _within_bounds(yaml.compose_all, text, TEXT_LOADER, _Measure(MAX_YAML_NODES, allow_aliases=True))


def _within_bounds(build: Callable[..., Any], text: str | bytes, loader: Any, measure: _Measure) -> list[Any]:
    try:
        raw = text.encode() if isinstance(text, str) else text
    except UnicodeEncodeError as error:
        raise BoundedYamlError(f"not text: {error}") from None
    if len(raw) > MAX_YAML_BYTES:
        raise BoundedYamlError(f"{len(raw)} bytes are more than the limit of {MAX_YAML_BYTES}")
    if sum(map(raw.count, _TAG_DIRECTIVES)) > MAX_TAG_DIRECTIVES:
        raise BoundedYamlError(f"more than {MAX_TAG_DIRECTIVES} tag directives")
    try:
        measure.check(yaml.parse(raw, Loader=loader))
        return list(build(raw, Loader=loader))
    except yaml.YAMLError as error:
        raise BoundedYamlError(_place(error)) from None
    except (ValueError, RecursionError, OverflowError, TypeError, LookupError, AttributeError) as error:
        if isinstance(error, BoundedYamlError):
            raise
        raise BoundedYamlError(str(error)) from None  # `!!bool maybe`, or an integer of ten thousand digits


class _Measure:
    """Counts what the events of a text amount to, and refuses as soon as it is too much."""

    def __init__(self, max_nodes: int, allow_aliases: bool) -> None:
        self._max_nodes = max_nodes
        self._allow_aliases = allow_aliases
        self._nodes = self._depth = self._documents = 0
        self._open: list[tuple[str | None, int, int]] = []  # the anchor, the nodes before it, the deepest level in it
        self._anchors: dict[str, tuple[int, int]] = {}  # nodes and levels behind each anchor

    def check(self, events: Any) -> None:
        for event in events:
            if isinstance(event, yaml.ScalarEvent):
                self._add(1, 0)
                if event.anchor is not None:
                    self._anchors[event.anchor] = (1, 0)
            elif isinstance(event, yaml.CollectionStartEvent):
                self._open.append((event.anchor, self._nodes, 0))
                self._add(1, 0)
            elif isinstance(event, yaml.CollectionEndEvent):
                self._close()
            elif isinstance(event, yaml.AliasEvent):
                self._follow(event.anchor)
            elif isinstance(event, yaml.DocumentStartEvent):
                self._anchors.clear()
                self._documents += 1
                if self._documents > MAX_YAML_DOCUMENTS:
                    raise BoundedYamlError(f"more than {MAX_YAML_DOCUMENTS} documents")

    def _add(self, nodes: int, levels: int) -> None:
        self._nodes += nodes
        if self._nodes > self._max_nodes:
            raise BoundedYamlError(f"more than {self._max_nodes} values once its aliases are followed")
        if len(self._open) + levels > MAX_YAML_DEPTH:
            raise BoundedYamlError(f"nested deeper than {MAX_YAML_DEPTH} levels")
        if self._open and self._open[-1][2] < levels:
            anchor, before, _ = self._open[-1]
            self._open[-1] = (anchor, before, levels)

    def _close(self) -> None:
        anchor, before, levels = self._open.pop()
        if anchor is not None:
            self._anchors[anchor] = (self._nodes - before, levels + 1)
        self._add(0, levels + 1)

    def _follow(self, anchor: str | None) -> None:
        if not self._allow_aliases:
            raise BoundedYamlError("yaml aliases are not accepted")
        if (
            anchor is None or anchor not in self._anchors
        ):  # not seen before, or still open, so that it would contain itself
            raise BoundedYamlError(f"the alias {anchor!r} is used where its anchor is not complete")
        self._add(*self._anchors[anchor])


def _place(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error)
    return f"line {mark.line + 1}, column {mark.column + 1}: {problem}" if mark is not None else problem
