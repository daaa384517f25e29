"""allOf, anyOf, oneOf and not: checks made of other checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from volcano.api import field_errors as say
from volcano.api.errors import FieldError
from volcano.api.field_errors import Path, path_text

Errors: TypeAlias = list[tuple[Path, FieldError]]
Check: TypeAlias = Callable[[Any, Path, Errors], None]


def _outcomes(checks: list[Check], value: Any, path: Path) -> list[Errors]:
    answers: list[Errors] = []
    for check in checks:
        found: Errors = []
        check(value, path, found)
        answers.append(found)
    return answers


def _fewest(answers: list[Errors]) -> Errors:
    return min(answers, key=lambda answer: len(answer))


def all_of(checks: list[Check]) -> Check:
    def check(value: Any, path: Path, errors: Errors) -> None:
        answers = _outcomes(checks, value, path)
        failed = [answer for answer in answers if answer]
        for answer in failed:
            errors.extend(answer)
        if failed:
            none = ". None validated" if len(failed) == len(answers) else ""
            errors.append((path, say.pathless(f'"{path_text(path)}" must validate all the schemas (allOf){none}')))

    return check


def any_of(checks: list[Check]) -> Check:
    def check(value: Any, path: Path, errors: Errors) -> None:
        answers = _outcomes(checks, value, path)
        if all(answers):
            errors.append((path, say.pathless(f'"{path_text(path)}" must validate at least one schema (anyOf)')))
            errors.extend(_fewest(answers))

    return check


def one_of(checks: list[Check]) -> Check:
    def check(value: Any, path: Path, errors: Errors) -> None:
        answers = _outcomes(checks, value, path)
        valid = sum(not answer for answer in answers)
        if valid == 1:
            return
        found = f"Found {valid} valid alternatives" if valid else "Found none valid"
        text = f'"{path_text(path)}" must validate one and only one schema (oneOf). {found}'
        errors.append((path, say.pathless(text)))
        if not valid:
            errors.extend(_fewest(answers))

    return check


def none_of(inner: Check) -> Check:
    def check(value: Any, path: Path, errors: Errors) -> None:
        found: Errors = []
        inner(value, path, found)
        if not found:
            errors.append((path, say.pathless(f'"{path_text(path)}" must not validate the schema (not)')))

    return check
