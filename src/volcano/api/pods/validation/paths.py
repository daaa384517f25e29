"""File paths inside a pod: relative ones that do not climb out, and modes of files."""

from __future__ import annotations

from volcano.api.fields import Field


def check_no_backsteps(place: Field, text: str) -> None:
    if ".." in text.split("/"):
        place.invalid("must not contain '..'", text)


def check_descending(place: Field, text: str) -> None:
    """Relative, and never upwards."""
    if text.startswith("/"):
        place.invalid("must be a relative path", text)
    check_no_backsteps(place, text)


def check_unreserved(place: Field, text: str) -> None:
    """Descending, and not a name the kubelet keeps for itself."""
    check_descending(place, text)
    if text.startswith("..") and not text.startswith("../"):
        place.invalid("must not start with '..'", text)


def check_mode(place: Field) -> None:
    mode = place.as_number()
    if mode is not None and not 0 <= mode <= 0o777:
        place.invalid("must be a number between 0 and 0777 (octal), both inclusive")


def check_needed(owner: Field, *fields: str) -> None:
    """Texts (or lists) that may not be missing or empty."""
    for name in fields:
        place = owner.at(name)
        if not place.is_set or place.value in ("", []):
            place.required()
