"""Whether a webhook concerns a write: its rules, its selectors, and its match conditions (CEL)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from volcano.api.errors import Forbidden, InternalError
from volcano.api.meta import JSON
from volcano.api.selectors import SelectorError, selector_from
from volcano.embedded.apiserver.store.contract import ObjectKey, Store
from volcano.machinery.admission import Attributes


def concerns(webhook: JSON, attributes: Attributes, store: Store) -> bool:
    if not rules_match(webhook.get("rules") or [], attributes):
        return False
    try:
        if not _selects_object(webhook.get("objectSelector"), attributes):
            return False
        if not _selects_namespace(webhook.get("namespaceSelector"), attributes, store):
            return False
    except (SelectorError, msgspec.ValidationError) as error:
        raise InternalError(f'webhook "{webhook.get("name", "")}" has a bad selector: {error}') from error
    conditions = webhook.get("matchConditions") or []
    return not conditions or conditions_hold(conditions, attributes, webhook)


# ── rules ──


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


# ── selectors ──


def _selects_object(selector: Any, attributes: Attributes) -> bool:
    """Whether the new or the old object has the labels."""
    if not selector:
        return True
    wanted = selector_from(selector)
    candidates = (attributes.object, attributes.old)
    return any(wanted.matches(_labels(candidate)) for candidate in candidates if candidate)


def _selects_namespace(selector: Any, attributes: Attributes, store: Store) -> bool:
    """Whether the object's namespace, or the namespace that is the object, has the labels."""
    row = attributes.resource
    if not selector:
        return True
    if row.qualified == "namespaces":
        return selector_from(selector).matches(_labels(attributes.object or attributes.old or {}))
    if not row.namespaced:
        return True
    stored = store.find(ObjectKey("namespaces", "", attributes.namespace))
    return selector_from(selector).matches(_labels(msgspec.json.decode(stored.raw)) if stored else {})


def _labels(obj: JSON) -> dict[str, str]:
    return (obj.get("metadata") or {}).get("labels") or {}


# ── match conditions ──


class _Undecided(Exception):
    """The expression could not be evaluated."""


@lru_cache(maxsize=512)
def _compiled(source: str) -> Any:
    from volcano.api.cel import evaluator as cel

    return cel.environment("object", "oldObject", "request").compile(source)


def conditions_hold(conditions: list[JSON], attributes: Attributes, webhook: JSON) -> bool:
    """All conditions are true. One that is false skips the webhook; one that fails counts by the failure policy."""
    request = {
        "operation": attributes.operation,
        "name": attributes.name,
        "namespace": attributes.namespace,
        "subResource": attributes.subresource,
        "dryRun": attributes.dry_run,
        "kind": {
            "group": attributes.resource.group,
            "version": attributes.resource.version,
            "kind": attributes.resource.kind,
        },
        "resource": {
            "group": attributes.resource.group,
            "version": attributes.resource.version,
            "resource": attributes.resource.plural,
        },
        "userInfo": {"username": attributes.user.name, "groups": list(attributes.user.groups)},
    }
    values = {"object": attributes.object, "oldObject": attributes.old, "request": request}
    failures: list[str] = []
    for condition in conditions:
        try:
            if not _evaluate(str(condition.get("expression", "")), values):
                return False
        except _Undecided as error:
            failures.append(f"{condition.get('name')}: {error}")
    if not failures:
        return True
    if webhook.get("failurePolicy", "Fail") == "Ignore":
        return False
    raise Forbidden(f'admission webhook "{webhook.get("name")}": match conditions failed: {"; ".join(failures)}')


def _evaluate(source: str, values: JSON) -> bool:
    from volcano.api.cel import evaluator as cel  # most servers have no webhook with conditions

    if len(source) > cel.MAX_EXPRESSION_CHARACTERS:
        raise _Undecided("the expression is too long")
    try:
        result = _compiled(source).eval(data=values)
        if cel.is_error(result):
            raise _Undecided(str(result.value())[:300])
        return bool(result.plain_value())
    except _Undecided:
        raise
    except Exception as error:  # the engine raises its own kinds, none of them public
        raise _Undecided(" ".join(str(error).split())[:300]) from error
