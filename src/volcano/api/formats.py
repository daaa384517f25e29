"""The string formats a CRD may name, each as a function from a text to a bool; unknown names are not checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date
from ipaddress import AddressValueError, IPv4Address, IPv6Address, NetmaskValueError, ip_network
from typing import Final
from urllib.parse import urlsplit

from volcano.api.patterns import compile_pattern

_TIME: Final = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))", re.ASCII)
_DURATION: Final = compile_pattern(r"^[-+]?(0|([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$")
"""Not for `re`, which takes quadratic time on a long row of zeros."""
_WORDY: Final = re.compile(
    r"[0-9]+(\.[0-9]+)?\s*(ns|nanos?|nanoseconds?|us|µs|micros?|microseconds?|ms|millis?|milliseconds?|s|secs?|seconds?"
    r"|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|wks?|weeks?)",
    re.ASCII,
)
_BASE64: Final = re.compile(r"([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})", re.ASCII)
_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_HOST_LABEL: Final = re.compile(r"[^\W_]([-\w]{0,61}[^\W_])?")
_EMAIL: Final = re.compile(r"(.*<)?[^\s@<>]+@[^\s@<>]+>?")
_MAC: Final = re.compile(
    r"([0-9a-f]{2}([:-][0-9a-f]{2}){5}|[0-9a-f]{2}([:-][0-9a-f]{2}){7}|[0-9a-f]{4}(\.[0-9a-f]{4}){2,3})",
    re.ASCII | re.IGNORECASE,
)
_BYTE: Final = r"([01]?[0-9]{1,2}|2[0-4][0-9]|25[0-5])"


def is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return len(text) == 10


def is_date_time(text: str) -> bool:
    day, separator, time = text.lower().partition("t")
    found = _TIME.fullmatch(time)
    if not separator or found is None or not is_date(day):
        return False
    return found[1] <= "23" and found[2] <= "59" and found[3] <= "59"


def is_duration(text: str) -> bool:
    return _DURATION.matches(text) or _WORDY.fullmatch(text) is not None


def is_ipv4(text: str) -> bool:
    try:
        IPv4Address(".".join(part.lstrip("0") or "0" for part in text.split(".")))
    except AddressValueError:
        return False
    return True


def is_ipv6(text: str) -> bool:
    try:
        IPv6Address(text)
    except AddressValueError:
        return False
    return "%" not in text


def is_cidr(text: str) -> bool:
    try:
        ip_network(text, strict=False)
    except (ValueError, NetmaskValueError):
        return False
    return text.partition("/")[2].isdigit()


def is_uri(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return bool(text) and not any(char.isspace() for char in text) and (bool(parts.scheme) or text.startswith("/"))


def is_hostname(text: str) -> bool:
    parts = text.split(".")
    if not text or len(text) > 255 or not all(_HOST_LABEL.fullmatch(part) for part in parts):
        return False
    return len(parts) == 1 or (len(parts[-1]) >= 2 and parts[-1].isalpha())


def is_isbn10(text: str) -> bool:
    digits = re.sub(r"[\s-]", "", text)
    if not re.fullmatch(r"[0-9]{9}[0-9X]", digits, re.ASCII):
        return False
    total = sum((10 - index) * (10 if digit == "X" else int(digit)) for index, digit in enumerate(digits))
    return total % 11 == 0


def is_isbn13(text: str) -> bool:
    digits = re.sub(r"[\s-]", "", text)
    if not re.fullmatch(r"[0-9]{13}", digits, re.ASCII):
        return False
    return sum((3 if index % 2 else 1) * int(digit) for index, digit in enumerate(digits)) % 10 == 0


def is_credit_card(text: str) -> bool:
    digits = re.sub(r"[^0-9]+", "", text)
    if not 13 <= len(digits) <= 16:
        return False
    doubled = [int(digit) * (2 if index % 2 else 1) for index, digit in enumerate(reversed(digits))]
    return sum(value - 9 if value > 9 else value for value in doubled) % 10 == 0


def _shape(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern, re.ASCII | re.IGNORECASE)
    return lambda text: compiled.fullmatch(text) is not None


def _uuid(version: str, variant: str = "[89ab]") -> Callable[[str], bool]:
    return _shape(f"[0-9a-f]{{8}}-?[0-9a-f]{{4}}-?{version}[0-9a-f]{{3}}-?{variant}[0-9a-f]{{3}}-?[0-9a-f]{{12}}")


FORMATS: Final[Mapping[str, Callable[[str], bool]]] = {
    "datetime": is_date_time,
    "date": is_date,
    "duration": is_duration,
    "byte": lambda text: _BASE64.fullmatch(text) is not None,
    "password": lambda text: True,
    "uri": is_uri,
    "email": lambda text: _EMAIL.fullmatch(text) is not None,
    "hostname": is_hostname,
    "ipv4": is_ipv4,
    "ipv6": is_ipv6,
    "cidr": is_cidr,
    "mac": lambda text: _MAC.fullmatch(text) is not None,
    "uuid": _uuid("[0-9a-f]", "[0-9a-f]"),
    "uuid3": _uuid("3", "[0-9a-f]"),
    "uuid4": _uuid("4"),
    "uuid5": _uuid("5"),
    "isbn": lambda text: is_isbn10(text) or is_isbn13(text),
    "isbn10": is_isbn10,
    "isbn13": is_isbn13,
    "creditcard": is_credit_card,
    "ssn": _shape(r"[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}"),
    "hexcolor": _shape(r"#?([0-9a-f]{3}|[0-9a-f]{6})"),
    "rgbcolor": _shape(rf"rgb\(\s*{_BYTE}\s*,\s*{_BYTE}\s*,\s*{_BYTE}\s*\)"),
    "bsonobjectid": _shape(r"[0-9a-f]{24}"),
    "k8sshortname": lambda text: len(text) <= 63 and _LABEL.fullmatch(text) is not None,
    "k8slongname": lambda text: len(text) <= 253 and all(_LABEL.fullmatch(part) for part in text.split(".")),
}


def format_check(name: str) -> Callable[[str], bool] | None:
    """The check for a format's name; dashes in names do not matter."""
    return FORMATS.get(name.replace("-", ""))
