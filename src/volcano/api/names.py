"""What names, label keys and values, ports, keys and paths may look like, in Kubernetes' own words.

Every check takes a text and answers with what is wrong with it: no problems, an empty list. Lengths are in bytes, as
Kubernetes counts them. Field paths are the caller's (api.field_errors).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from typing import Final

LABEL_LENGTH: Final = 63
SUBDOMAIN_LENGTH: Final = 253
MAX_ANNOTATIONS_BYTES: Final = 256 * 1024

_ALNUM: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS_LABEL: Final = _ALNUM
_SUBDOMAIN: Final = rf"{_ALNUM}(\.{_ALNUM})*"
_UNDERSCORED: Final = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_UNDERSCORED_SUBDOMAIN: Final = rf"{_UNDERSCORED}(\.{_UNDERSCORED})*"
_DNS_1035: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE: Final = f"({_QUALIFIED})?"
_CONFIG_KEY: Final = "[-._a-zA-Z0-9]+"
_HEADER: Final = "[-A-Za-z0-9]+"
_PERCENT: Final = "[0-9]+%"

_QUALIFIED_RULE: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)
_NO_ADDRESS: Final = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"


def dns_label_problems(value: str) -> list[str]:
    """A lower-case DNS-1123 label of at most 63 characters: names of containers, volumes, namespaces."""
    problems = _too_long(value, LABEL_LENGTH)
    if not re.fullmatch(_DNS_LABEL, value):
        if re.fullmatch(_SUBDOMAIN, value):
            problems.append("must not contain dots")
        else:
            rule = (
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
                "and must start and end with an alphanumeric character"
            )
            problems.append(pattern_message(rule, _DNS_LABEL, "my-name", "123-abc"))
    return problems


def subdomain_problems(value: str) -> list[str]:
    """A lower-case DNS-1123 subdomain of at most 253 characters: names of most objects."""
    problems = _too_long(value, SUBDOMAIN_LENGTH)
    if not re.fullmatch(_SUBDOMAIN, value):
        rule = (
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
            "and must start and end with an alphanumeric character"
        )
        problems.append(pattern_message(rule, _SUBDOMAIN, "example.com"))
    return problems


def underscored_subdomain_problems(value: str) -> list[str]:
    """A subdomain whose labels may hold underscores, as DNS search paths may."""
    problems = _too_long(value, SUBDOMAIN_LENGTH)
    if not re.fullmatch(_UNDERSCORED_SUBDOMAIN, value):
        rule = (
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', "
            "and must start and end with an alphanumeric character"
        )
        problems.append(pattern_message(rule, _UNDERSCORED_SUBDOMAIN, "example.com"))
    return problems


def dns_1035_label_problems(value: str) -> list[str]:
    """A DNS label that starts with a letter: names of Services."""
    problems = _too_long(value, LABEL_LENGTH)
    if not re.fullmatch(_DNS_1035, value):
        rule = (
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
            "character, and end with an alphanumeric character"
        )
        problems.append(pattern_message(rule, _DNS_1035, "my-name", "abc-123"))
    return problems


def qualified_name_problems(value: str) -> list[str]:
    """`name` or `prefix/name`: label and annotation keys, resource names, taint keys."""
    prefix, slash, name = value.rpartition("/")
    if "/" in prefix:
        rule = pattern_message(f"a valid label key {_QUALIFIED_RULE}", _QUALIFIED, "MyName", "my.name", "123-abc")
        return [f"{rule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]
    problems: list[str] = []
    if slash and not prefix:
        problems.append("prefix part must be non-empty")
    elif slash:
        problems += [f"prefix part {problem}" for problem in _in_bytes(subdomain_problems(prefix))]
    if not name:
        problems.append("name part must be non-empty")
    problems += [f"name part {problem}" for problem in _in_bytes(_too_long(name, LABEL_LENGTH))]
    if not re.fullmatch(_QUALIFIED, name):
        rule = pattern_message(_QUALIFIED_RULE, _QUALIFIED, "MyName", "my.name", "123-abc")
        problems.append(f"name part {rule}")
    return problems


label_key_problems = qualified_name_problems


def label_value_problems(value: str) -> list[str]:
    problems = _in_bytes(_too_long(value, LABEL_LENGTH))
    if not re.fullmatch(_LABEL_VALUE, value):
        rule = (
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
            "and must start and end with an alphanumeric character"
        )
        problems.append(pattern_message(rule, _LABEL_VALUE, "MyValue", "my_value", "12345"))
    return problems


def env_name_problems(value: str) -> list[str]:
    """Names of environment variables: printable ASCII without '=' (the rule since Kubernetes 1.34)."""
    if not value:
        return ["environment variable name must be non-empty"]
    if all(" " <= character <= "~" and character != "=" for character in value):
        return []
    return ["a valid environment variable name must consist only of printable ASCII characters other than '='"]


def config_key_problems(value: str) -> list[str]:
    """A key of a ConfigMap or Secret, usable as a file name."""
    problems = _too_long(value, SUBDOMAIN_LENGTH)
    if not re.fullmatch(_CONFIG_KEY, value):
        rule = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
        problems.append(pattern_message(rule, _CONFIG_KEY, "key.name", "KEY_NAME", "key-name"))
    if value in (".", ".."):
        problems.append(f"must not be '{value}'")
    elif value.startswith(".."):
        problems.append("must not start with '..'")
    return problems


def port_name_problems(value: str) -> list[str]:
    """An IANA service name."""
    problems = _too_long(value, 15)
    if not re.fullmatch("[-a-z0-9]+", value):
        problems.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", value):
        problems.append("must contain at least one letter (a-z)")
    if "--" in value:
        problems.append("must not contain consecutive hyphens")
    if value.startswith("-") or value.endswith("-"):
        problems.append("must not begin or end with a hyphen")
    return problems


def port_number_problems(value: int) -> list[str]:
    return range_problems(value, 1, 65535)


def range_problems(value: int, low: int, high: int) -> list[str]:
    return [] if low <= value <= high else [f"must be between {low} and {high}, inclusive"]


def header_name_problems(value: str) -> list[str]:
    if re.fullmatch(_HEADER, value):
        return []
    rule = "a valid HTTP header must consist of alphanumeric characters or '-'"
    return [pattern_message(rule, _HEADER, "X-Header-Name")]


def percent_problems(value: str) -> list[str]:
    if re.fullmatch(_PERCENT, value):
        return []
    rule = "a valid percent string must be a numeric string followed by an ending '%'"
    return [pattern_message(rule, _PERCENT, "1%", "93%")]


def path_segment_problems(value: str) -> list[str]:
    """A name that can stand in a URL path: what every object name must at least be."""
    if value in (".", ".."):
        return [f"may not be '{value}'"]
    return [f"may not contain '{mark}'" for mark in ("/", "%") if mark in value]


def ip_problems(value: str) -> list[str]:
    """What is wrong with an IP address, IPv4 or IPv6."""
    try:
        address = ipaddress.ip_address(value)
    except ValueError:
        octets = value.split(".")
        if len(octets) == 4 and all(re.fullmatch("0*[0-9]{1,3}", o) and int(o) < 256 for o in octets):
            return ["must not have leading 0s"]
        return [_NO_ADDRESS]
    if "%" in value:
        return [_NO_ADDRESS]
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return ["must not be an IPv4-mapped IPv6 address"]
    return []


def annotations_are_too_large(annotations: Mapping[str, str]) -> bool:
    return sum(byte_length(key) + byte_length(value) for key, value in annotations.items()) > MAX_ANNOTATIONS_BYTES


def pattern_message(rule: str, pattern: str, *examples: str) -> str:
    """The rule, its examples and its pattern, spaced as Kubernetes does."""
    if not examples:
        return f"{rule} (regex used for validation is '{pattern}')"
    listed = " or ".join(f"'{example}', " for example in examples)
    return f"{rule} (e.g. {listed}regex used for validation is '{pattern}')"


def byte_length(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _too_long(value: str, limit: int) -> list[str]:
    return [f"must be no more than {limit} characters"] if byte_length(value) > limit else []


def _in_bytes(problems: list[str]) -> list[str]:
    """Kubernetes counts bytes in both, and writes `bytes` for labels but still `characters` for DNS names."""
    return [re.sub(r"(no more than \d+) characters$", r"\1 bytes", problem) for problem in problems]
