"""matchConditions of webhooks: CEL expressions over the request."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from volcano.api.errors import Forbidden
from volcano.api.meta import JSON
from volcano.embedded.apiserver.schemas.cel import evaluator as cel
from volcano.machinery.admission import Attributes


class _Undecided(Exception):
    """The expression could not be evaluated."""


@lru_cache(maxsize=512)
def _compiled(source: str) -> Any:
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
