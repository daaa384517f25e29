"""Validation of a CustomResourceDefinition: names, scope, versions and columns. Schemas are in crd.schema_validation.

Messages are those of kube-apiserver. The object has been checked against its own types before; what is still of a
wrong type counts as absent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from volcano.api import field_errors as say
from volcano.api.errors import FieldError
from volcano.api.field_errors import Path
from volcano.api.meta import JSON

if TYPE_CHECKING:
    from volcano.embedded.apiserver.schemas.crd.schema_limits import SchemaLimits

SCOPES: Final = ("Cluster", "Namespaced")
COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
COLUMN_FORMATS: Final = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
STRATEGIES: Final = ("None", "Webhook")
MAX_VERSIONS: Final = 64
MAX_SCHEMA_ERRORS: Final = 500
"""Further ones are reported when these are repaired."""

_DNS_1035: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)
_LABEL_TEXT: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
_SUBDOMAIN_TEXT: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)


def validate_crd(crd: JSON, known: Sequence[JSON] = ()) -> list[FieldError]:
    """All that is wrong with a CustomResourceDefinition. Schemas that are `known` were validated before."""
    spec = as_object(crd.get("spec"))
    name = as_text(as_object(crd.get("metadata")).get("name"))
    names = as_object(spec.get("names"))
    errors: list[FieldError] = []
    if name != f"{as_text(names.get('plural'))}.{as_text(spec.get('group'))}":
        errors.append(say.invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group'))
    errors += _group_errors(as_text(spec.get("group")))
    errors += _choice_errors("spec.scope", as_text(spec.get("scope")), SCOPES)
    errors += _versions_errors(as_list(spec.get("versions")), known)
    errors += _names_errors(names)
    if "conversion" in spec:
        errors += _conversion_errors(as_object(spec.get("conversion")))
    if spec.get("preserveUnknownFields") is True:
        detail = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        )
        errors.append(say.invalid("spec.preserveUnknownFields", True, detail))
    return errors


def validate_crd_update(crd: JSON, old: JSON, known: Sequence[JSON] = ()) -> list[FieldError]:
    """All that is wrong with a change: what names the stored objects is immutable once established."""
    errors = validate_crd(crd, known)
    spec, before = as_object(crd.get("spec")), as_object(old.get("spec"))
    conditions = as_list(as_object(old.get("status")).get("conditions"))
    established = any(c.get("type") == "Established" and c.get("status") == "True" for c in map(as_object, conditions))
    fixed = ["spec.group", "spec.names.plural"]
    if established:
        fixed += ["spec.scope", "spec.names.kind"]
    for path in fixed:
        value = _at(spec, path)
        if value != _at(before, path):
            errors.append(say.invalid(path, value, "field is immutable"))
    return errors


def as_object(value: Any) -> JSON:
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _at(spec: JSON, path: str) -> str:
    found: Any = spec
    for step in path.split(".")[1:]:
        found = as_object(found).get(step)
    return as_text(found)


def label_problem(text: str) -> str:
    """Why a text is not a DNS-1035 label; empty when it is one."""
    problems = ["must be no more than 63 bytes"] if len(text.encode()) > 63 else []
    if not _DNS_1035.fullmatch(text):
        problems.append(_LABEL_TEXT)
    return ",".join(problems)


def _group_errors(group: str) -> Iterator[FieldError]:
    if not group:
        yield say.required("spec.group")
    elif len(group) > 253 or not _SUBDOMAIN.fullmatch(group):
        yield say.invalid("spec.group", group, _SUBDOMAIN_TEXT)
    elif "." not in group:
        yield say.invalid("spec.group", group, "should be a domain with at least one dot")


def _choice_errors(path: str, value: str, accepted: tuple[str, ...]) -> Iterator[FieldError]:
    if not value:
        yield say.required(path)
    elif value not in accepted:
        yield say.not_supported(path, value, accepted)


def _versions_errors(versions: list[Any], known: Sequence[JSON]) -> Iterator[FieldError]:
    if len(versions) > MAX_VERSIONS:
        yield say.too_many("spec.versions", len(versions), MAX_VERSIONS)
        return
    for index, version in enumerate(map(as_object, versions)):
        yield from _version_errors(version, ("spec.versions", index))
    for place, aspect in _aspects([as_object(version) for version in versions], known):
        yield from aspect(place)
    named = [as_text(as_object(version).get("name")) for version in versions]
    if len(set(named)) != len(named):
        yield say.invalid("spec.versions", versions, "must contain unique version names")
    if sum(as_object(version).get("storage") is True for version in versions) != 1:
        yield say.invalid("spec.versions", versions, "must have exactly one version marked as storage version")


def _version_errors(version: JSON, path: Path) -> Iterator[FieldError]:
    name = as_text(version.get("name"))
    if problem := label_problem(name):
        yield say.invalid((path, "name"), name, problem)
    if not isinstance(as_object(version.get("schema")).get("openAPIV3Schema"), dict):
        yield say.required(((path, "schema"), "openAPIV3Schema"))
    warning = version.get("deprecationWarning")
    if isinstance(warning, str) and version.get("deprecated") is not True:
        yield say.invalid((path, "deprecationWarning"), warning, "can only be set for deprecated versions")


def _aspects(
    versions: list[JSON], known: Sequence[JSON]
) -> Iterator[tuple[Path, Callable[[Path], Iterator[FieldError]]]]:
    """Schema, subresources and columns, each with where it is reported.

    Kubernetes keeps what all versions share in one place, and reports it there: `spec.validation` and so on.
    """
    for name, shared, errors in (
        ("schema", "validation", _SchemaPlaces(known).errors),
        ("subresources", "subresources", _subresources_errors),
        ("additionalPrinterColumns", "additionalPrinterColumns", _columns_errors),
    ):
        values = [version.get(name) for version in versions]
        if values and values[0] and all(value == values[0] for value in values):
            yield ("spec", shared), partial(errors, values[0])
        else:
            for index, value in enumerate(values):
                yield (("spec.versions", index), name), partial(errors, value)


class _SchemaPlaces:
    """The schemas of one definition, which share what they may cost together.

    What validates them is imported with the first schema that is not known.
    """

    def __init__(self, known: Sequence[JSON]) -> None:
        self._known = known

    @cached_property
    def _limits(self) -> SchemaLimits:
        from volcano.embedded.apiserver.schemas.crd.schema_limits import SchemaLimits

        return SchemaLimits()

    def errors(self, value: Any, path: Path) -> Iterator[FieldError]:
        schema, place = as_object(value).get("openAPIV3Schema"), (path, "openAPIV3Schema")
        if not isinstance(schema, dict) or schema in self._known:
            return
        from volcano.embedded.apiserver.schemas.crd.schema_validation import schema_errors

        too_large = self._limits.error(schema, place)
        if too_large is not None:
            yield too_large
        else:
            yield from islice(schema_errors(schema, place), MAX_SCHEMA_ERRORS)


def _columns_errors(value: Any, path: Path) -> Iterator[FieldError]:
    for index, column in enumerate(map(as_object, as_list(value))):
        yield from _column_errors(column, (path, index))


def _subresources_errors(value: Any, path: Path) -> Iterator[FieldError]:
    if "scale" not in as_object(value):
        return
    scale = as_object(as_object(value)["scale"])
    for name, roots in (
        ("specReplicasPath", (".spec.",)),
        ("statusReplicasPath", (".status.",)),
        ("labelSelectorPath", (".spec.", ".status.")),
    ):
        place = (path, f"scale.{name}")
        found = as_text(scale.get(name))
        if not found:
            if name != "labelSelectorPath":
                yield say.required(place)
        elif not found.startswith("."):
            yield say.invalid(place, found, "must be a simple json path starting with .")
        elif not found.startswith(roots):
            under = "either .spec or .status" if len(roots) > 1 else roots[0].removesuffix(".")
            yield say.invalid(place, found, f"should be a json path under {under}")


def _column_errors(column: JSON, path: Path) -> Iterator[FieldError]:
    kinds = f"must be one of {','.join(COLUMN_TYPES)}"
    if not as_text(column.get("name")):
        yield say.required((path, "name"))
    kind, layout = as_text(column.get("type")), as_text(column.get("format"))
    if not kind:
        yield say.required((path, "type"), kinds)
    elif kind not in COLUMN_TYPES:
        yield say.invalid((path, "type"), kind, kinds)
    if layout and layout not in COLUMN_FORMATS:
        yield say.invalid((path, "format"), layout, f"must be one of {','.join(COLUMN_FORMATS)}")
    json_path = as_text(column.get("jsonPath"))
    if not json_path:
        yield say.required((path, "JSONPath"))
    elif not json_path.startswith("."):
        yield say.invalid((path, "JSONPath"), json_path, "must be a simple json path starting with .")


def _names_errors(names: JSON) -> Iterator[FieldError]:
    for name in ("plural", "singular", "kind", "listKind"):
        value = as_text(names.get(name))
        path = f"spec.names.{name}"
        if not value:
            yield say.required(path)
            continue
        mixed = name in ("kind", "listKind")
        if problem := label_problem(value.lower() if mixed else value):
            prefix = "may have mixed case, but should otherwise match: " if mixed else ""
            yield say.invalid(path, value, prefix + problem)
    for name in ("shortNames", "categories"):
        for index, value in enumerate(map(as_text, as_list(names.get(name)))):
            if problem := label_problem(value):
                yield say.invalid((f"spec.names.{name}", index), value, problem)
    kind = as_text(names.get("kind"))
    if kind and kind == names.get("listKind"):
        yield say.invalid("spec.names.listKind", kind, "kind and listKind may not be the same")


def _conversion_errors(conversion: JSON) -> Iterator[FieldError]:
    path = "spec.conversion"
    strategy = as_text(conversion.get("strategy"))
    yield from _choice_errors(f"{path}.strategy", strategy, STRATEGIES)
    webhook = conversion.get("webhook")
    if strategy == "Webhook" and not isinstance(as_object(webhook).get("clientConfig"), dict):
        yield say.required(f"{path}.webhookClientConfig", "required when strategy is set to Webhook")
        if not as_list(as_object(webhook).get("conversionReviewVersions")):
            yield say.required(f"{path}.conversionReviewVersions")
    elif strategy != "Webhook" and isinstance(webhook, dict):
        yield say.forbidden(f"{path}.webhookClientConfig", "should not be set when strategy is not set to Webhook")
