"""Whether a webhook's rules are about a write: operation, group, version, resource, scope."""

from __future__ import annotations

from typing import Any

from volcano.machinery.admission import Attributes


def rules_match(rules: list[Any], attributes: Attributes) -> bool:
    return any(_matches(rule, attributes) for rule in rules if isinstance(rule, dict))


def _matches(rule: dict[str, Any], attributes: Attributes) -> bool:
    row = attributes.resource
    scope = rule.get("scope") or "*"
    if scope != "*" and (scope == "Namespaced") is not row.namespaced:
        return False
    return (
        _any(rule.get("operations"), attributes.operation)
        and _any(rule.get("apiGroups"), row.group)
        and _any(rule.get("apiVersions"), row.version)
        and any(
            _resource_matches(str(text), row.plural, attributes.subresource) for text in rule.get("resources") or []
        )
    )


def _any(values: Any, wanted: str) -> bool:
    return isinstance(values, list) and ("*" in values or wanted in values)


def _resource_matches(text: str, plural: str, subresource: str) -> bool:
    """`pods`, `pods/status`, `pods/*`, `*`, `*/*`, `*/scale`."""
    resource, _, below = text.partition("/")
    if resource not in ("*", plural):
        return False
    return below == subresource or below == "*"
