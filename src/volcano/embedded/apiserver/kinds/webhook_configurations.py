"""Mutating and ValidatingWebhookConfigurations: their validation. They are called by admitting.webhooks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urlsplit

from volcano.api import field_errors as says
from volcano.api.errors import FieldError
from volcano.api.meta import JSON
from volcano.api.names import subdomain_problems
from volcano.embedded.apiserver.kinds.strategy import Strategy

_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SIDE_EFFECTS: Final = ("None", "NoneOnDryRun")


class WebhookConfigurations(Strategy):
    def validate(self, obj: JSON) -> list[FieldError]:
        return _configuration_errors(obj)


def _configuration_errors(obj: JSON) -> list[FieldError]:
    errors: list[FieldError] = []
    names: set[str] = set()
    for number, webhook in enumerate(obj.get("webhooks") or []):
        path = f"webhooks[{number}]"
        if not isinstance(webhook, dict):
            errors.append(says.type_invalid(path, webhook, "must be an object"))
            continue
        errors += _webhook(webhook, path)
        name = str(webhook.get("name") or "")
        if name in names:
            errors.append(says.duplicate(f"{path}.name", name))
        names.add(name)
    return errors


def _webhook(webhook: JSON, path: str) -> Iterator[FieldError]:
    yield from _name(str(webhook.get("name") or ""), f"{path}.name")
    for number, rule in enumerate(webhook.get("rules") or []):
        yield from _rule(rule if isinstance(rule, dict) else {}, f"{path}.rules[{number}]")
    yield from _choice(webhook, path, "failurePolicy", ("Fail", "Ignore"))
    yield from _choice(webhook, path, "matchPolicy", ("Equivalent", "Exact"))
    if webhook.get("sideEffects") is None:
        yield says.required(f"{path}.sideEffects", f"must specify one of {', '.join(_SIDE_EFFECTS)}")
    else:
        yield from _choice(webhook, path, "sideEffects", _SIDE_EFFECTS)
    seconds = webhook.get("timeoutSeconds")
    if isinstance(seconds, int) and not 1 <= seconds <= 30:
        yield says.invalid(f"{path}.timeoutSeconds", seconds, "the timeout value must be between 1 and 30 seconds")
    yield from _client(webhook.get("clientConfig") or {}, f"{path}.clientConfig")
    versions = webhook.get("admissionReviewVersions") or []
    if not versions:
        yield says.required(f"{path}.admissionReviewVersions", "must specify one of v1, v1beta1")
    elif not {"v1", "v1beta1"} & set(map(str, versions)):
        why = "must include at least one of v1, v1beta1"
        yield says.invalid(f"{path}.admissionReviewVersions", versions, why)


def _name(name: str, path: str) -> Iterator[FieldError]:
    if not name:
        yield says.required(path)
        return
    for problem in subdomain_problems(name):
        yield says.invalid(path, name, problem)
    if len(name.split(".")) < 3:
        yield says.invalid(path, name, "should be a domain with at least three segments separated by dots")


def _rule(rule: JSON, path: str) -> Iterator[FieldError]:
    for field in ("operations", "apiGroups", "apiVersions", "resources"):
        values = rule.get(field) or []
        if not values:
            yield says.required(f"{path}.{field}")
        elif field != "resources" and len(values) > 1 and "*" in values:
            yield says.invalid(f"{path}.{field}", values, "if '*' is present, must not specify other " + _plural(field))
    for number, operation in enumerate(rule.get("operations") or []):
        if operation not in _OPERATIONS:
            yield says.not_supported(f"{path}.operations[{number}]", operation or "", _OPERATIONS)
    yield from _choice(rule, path, "scope", ("*", "Cluster", "Namespaced"))


def _plural(field: str) -> str:
    return {"apiGroups": "API groups", "apiVersions": "API versions"}.get(field, field)


def _choice(values: JSON, path: str, field: str, choices: tuple[str, ...]) -> Iterator[FieldError]:
    value = values.get(field)
    if value is not None and value not in choices:
        yield says.not_supported(f"{path}.{field}", value, choices)


def _client(config: Any, path: str) -> Iterator[FieldError]:
    if not isinstance(config, dict) or (config.get("url") is None) == (config.get("service") is None):
        yield says.required(path, "exactly one of url or service is required")
        return
    if config.get("url") is not None:
        yield from _url(str(config["url"]), f"{path}.url")
        return
    service = config["service"] if isinstance(config["service"], dict) else {}
    for field in ("name", "namespace"):
        if not service.get(field):
            yield says.required(f"{path}.service.{field}", f"service {field} is required")


def _url(url: str, path: str) -> Iterator[FieldError]:
    form = "; desired format: https://host[/path]"
    try:
        parts = urlsplit(url)
    except ValueError as error:
        yield says.required(path, f"url must be a valid URL: {error}{form}")
        return
    if parts.scheme != "https":
        yield says.invalid(path, parts.scheme, f"'https' is the only allowed URL scheme{form}")
    if not parts.netloc:
        yield says.invalid(path, "", f"host must be specified{form}")
    if parts.username:
        yield says.invalid(path, parts.username, "user information is not permitted in the URL")
    if parts.fragment:
        yield says.invalid(path, parts.fragment, "fragments are not permitted in the URL")
    if parts.query:
        yield says.invalid(path, parts.query, "query parameters are not permitted in the URL")
