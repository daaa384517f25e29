"""CEL's semver: versions by the rules of semver.org, compared by precedence; build metadata does not count."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from volcano.api.cel.values import Function, made, succeeds, text_of

SEMVER: Final = "kubernetes.Semver"
MAX_NUMBER: Final = 2**64 - 1
_NUMBER: Final = "(?:0|[1-9][0-9]*)"
_PART: Final = rf"(?:{_NUMBER}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_VERSION: Final = re.compile(
    rf"({_NUMBER})\.({_NUMBER})\.({_NUMBER})(?:-({_PART}(?:\.{_PART})*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?",
    re.ASCII,
)
_LOOSE: Final = re.compile(r"v?(?P<numbers>[0-9]+(?:\.[0-9]+){0,2})(?P<rest>[-+].*)?", re.ASCII | re.DOTALL)


class Version(NamedTuple):
    """A version; of pre-release identifiers, numbers sort below words, and a version without any sorts above all."""

    major: int
    minor: int
    patch: int
    is_release: bool
    before: tuple[tuple[bool, int, str], ...]
    text: str

    @property
    def order(self) -> tuple[Any, ...]:
        return self[:5]


def parse_version(text: str, normalize: bool = False) -> Version:
    found = _VERSION.fullmatch(_normalized(text) if normalize else text)
    if found is None or any(int(found[group]) > MAX_NUMBER for group in (1, 2, 3)):
        raise ValueError(f'"{text[:64]}" is not a semantic version')
    parts = found[4].split(".") if found[4] else []
    before = tuple((not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in parts)
    if any(number > MAX_NUMBER for _, number, _ in before):
        raise ValueError(f'"{text[:64]}" is not a semantic version')
    canonical = ".".join(found.group(1, 2, 3)) + (f"-{found[4]}" if found[4] else "")
    return Version(int(found[1]), int(found[2]), int(found[3]), not parts, before, canonical)


def _normalized(text: str) -> str:
    """Without a leading v, with all three numbers, and without zeros before them."""
    found = _LOOSE.fullmatch(text)
    if found is None:
        return text
    numbers = [number.lstrip("0") or "0" for number in found["numbers"].split(".")]
    if len(numbers) < 3 and found["rest"]:
        return text  # a shortened version has no pre-release part
    return ".".join((*numbers, *["0"] * (3 - len(numbers)))) + (found["rest"] or "")


def _made(text: str, normalize: bool = False) -> dict[str, str]:
    return made(SEMVER, parse_version(text, normalize).text)


def version_of(value: Mapping[str, Any]) -> Version:
    return parse_version(text_of(value, SEMVER))


def compare_versions(one: Mapping[str, Any], other: Mapping[str, Any]) -> int:
    first, second = version_of(one).order, version_of(other).order
    return (first > second) - (first < second)


FUNCTIONS: Final[tuple[Function, ...]] = (
    Function("isSemver", ("STRING",), "BOOL", succeeds(parse_version), False),
    Function("isSemver", ("STRING", "BOOL"), "BOOL", succeeds(parse_version), False),
    Function("semver", ("STRING",), "MAP", _made, False),
    Function("semver", ("STRING", "BOOL"), "MAP", _made, False),
    Function("major", ("MAP",), "INT", lambda value: version_of(value).major),
    Function("minor", ("MAP",), "INT", lambda value: version_of(value).minor),
    Function("patch", ("MAP",), "INT", lambda value: version_of(value).patch),
)
