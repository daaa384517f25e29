"""What names, labels, annotations and finalizers may look like, in Kubernetes' words."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from volcano.api.errors import FieldError
from volcano.api.meta import JSON
from volcano.apiserver.schemas.field_errors import invalid, required, too_long, type_invalid

_LABEL_FORM: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN_FORM: Final = rf"{_LABEL_FORM}(\.{_LABEL_FORM})*"
_DNS1035_FORM: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED_FORM: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE_FORM: Final = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"

_LABEL: Final = re.compile(_LABEL_FORM)
_SUBDOMAIN: Final = re.compile(_SUBDOMAIN_FORM)
_DNS1035: Final = re.compile(_DNS1035_FORM)
_QUALIFIED: Final = re.compile(_QUALIFIED_FORM)
_VALUE: Final = re.compile(_VALUE_FORM)

ANNOTATIONS_LIMIT: Final = 256 * 1024

NameRule = Callable[[str], list[str]]


def subdomain_faults(name: str) -> list[str]:
    faults = []
    if len(name) > 253:
        faults.append("must be no more than 253 characters")
    if not _SUBDOMAIN.fullmatch(name):
        faults.append(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
            "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
            f"'{_SUBDOMAIN_FORM}')"
        )
    return faults


def label_faults(name: str) -> list[str]:
    faults = []
    if len(name) > 63:
        faults.append("must be no more than 63 characters")
    if not _LABEL.fullmatch(name):
        faults.append(
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and "
            "end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
            f"'{_LABEL_FORM}')"
        )
    return faults


def dns1035_faults(name: str) -> list[str]:
    faults = []
    if len(name) > 63:
        faults.append("must be no more than 63 characters")
    if not _DNS1035.fullmatch(name):
        faults.append(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
            "character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for "
            f"validation is '{_DNS1035_FORM}')"
        )
    return faults


def path_segment_faults(name: str) -> list[str]:
    if name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{char}'" for char in "/%" if char in name]


def qualified_name_faults(name: str) -> list[str]:
    prefix, slash, last = name.rpartition("/")
    faults = []
    if name.count("/") > 1:
        return [
            "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
            "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
            f"'{_QUALIFIED_FORM}') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    if slash:
        if not prefix:
            faults.append("prefix part must be non-empty")
        else:
            faults += [f"prefix part {fault}" for fault in subdomain_faults(prefix)]
    if not last:
        faults.append("name part must be non-empty")
    elif len(last) > 63:
        faults.append("name part must be no more than 63 characters")
    if not _QUALIFIED.fullmatch(last):
        faults.append(
            "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
            "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
            f"'{_QUALIFIED_FORM}')"
        )
    return faults


def label_value_faults(value: str) -> list[str]:
    faults = []
    if len(value) > 63:
        faults.append("must be no more than 63 characters")
    if not _VALUE.fullmatch(value):
        faults.append(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must "
            "start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
            f"validation is '{_VALUE_FORM}')"
        )
    return faults


NAME_RULES: Final[Mapping[str, NameRule]] = {
    "namespaces": label_faults,
    "services": dns1035_faults,
    "roles.rbac.authorization.k8s.io": path_segment_faults,
    "rolebindings.rbac.authorization.k8s.io": path_segment_faults,
    "clusterroles.rbac.authorization.k8s.io": path_segment_faults,
    "clusterrolebindings.rbac.authorization.k8s.io": path_segment_faults,
}
"""Where names are not the usual DNS subdomains."""


def name_faults(qualified: str, name: str) -> list[str]:
    return NAME_RULES.get(qualified, subdomain_faults)(name)


def metadata_errors(qualified: str, metadata: JSON) -> list[FieldError]:
    """All that is wrong with an object's metadata, types first: what has a wrong type is not looked into."""
    errors = _type_errors(metadata)
    if errors:
        return errors
    name = metadata.get("name") or ""
    generate = metadata.get("generateName") or ""
    if generate:
        errors += [
            invalid("metadata.generateName", generate, f) for f in name_faults(qualified, generate.rstrip("-.") or "a")
        ]
    if not name:
        if not generate:
            errors.append(required("metadata.name", "name or generateName is required"))
    else:
        errors += [invalid("metadata.name", name, fault) for fault in name_faults(qualified, name)]
    errors += label_errors("metadata.labels", metadata.get("labels") or {})
    errors += annotation_errors("metadata.annotations", metadata.get("annotations") or {})
    errors += _owner_errors(metadata.get("ownerReferences") or [])
    for finalizer in metadata.get("finalizers") or []:
        errors += finalizer_errors("metadata.finalizers", finalizer)
    return errors


_TEXTS: Final = ("name", "generateName", "namespace", "resourceVersion", "uid")


def _type_errors(metadata: Any) -> list[FieldError]:
    if not isinstance(metadata, dict):
        return [type_invalid("metadata", metadata, "must be an object")]
    errors = [
        type_invalid(f"metadata.{field}", metadata[field], "must be a string")
        for field in _TEXTS
        if not isinstance(metadata.get(field) or "", str)
    ]
    for field in ("labels", "annotations"):
        found = metadata.get(field) or {}
        if not isinstance(found, dict) or not all(isinstance(v, str) for v in found.values()):
            errors.append(type_invalid(f"metadata.{field}", found, "must be a map of strings"))
    finalizers = metadata.get("finalizers") or []
    if not isinstance(finalizers, list) or not all(isinstance(v, str) for v in finalizers):
        errors.append(type_invalid("metadata.finalizers", finalizers, "must be a list of strings"))
    owners = metadata.get("ownerReferences") or []
    if not isinstance(owners, list) or not all(isinstance(v, dict) for v in owners):
        errors.append(type_invalid("metadata.ownerReferences", owners, "must be a list of objects"))
    return errors


def label_errors(path: str, labels: Mapping[str, str]) -> list[FieldError]:
    errors = []
    for key, value in labels.items():
        errors += [invalid(path, key, fault) for fault in qualified_name_faults(key)]
        errors += [invalid(path, value, fault) for fault in label_value_faults(value)]
    return errors


def annotation_errors(path: str, annotations: Mapping[str, str]) -> list[FieldError]:
    errors = [invalid(path, key, fault) for key in annotations for fault in qualified_name_faults(key.lower())]
    if sum(len(key) + len(value) for key, value in annotations.items()) > ANNOTATIONS_LIMIT:
        errors.append(too_long(path, ANNOTATIONS_LIMIT))
    return errors


_STANDARD_FINALIZERS: Final = frozenset({"orphan", "foregroundDeletion", "kubernetes"})


def finalizer_errors(path: str, finalizer: str) -> list[FieldError]:
    errors = [invalid(path, finalizer, fault) for fault in qualified_name_faults(finalizer)]
    if not errors and "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
        errors.append(invalid(path, finalizer, "name is neither a standard finalizer name nor is it fully qualified"))
    return errors


def _owner_errors(owners: list[JSON]) -> list[FieldError]:
    errors: list[FieldError] = []
    controllers = []
    for number, owner in enumerate(owners):
        path = f"metadata.ownerReferences[{number}]"
        for field in ("apiVersion", "kind", "name", "uid"):
            value = owner.get(field)
            if not value:
                errors.append(invalid(f"{path}.{field}", value or "", f"{_word(field)} must not be empty"))
            elif not isinstance(value, str):
                errors.append(type_invalid(f"{path}.{field}", value, "must be a string"))
        if owner.get("apiVersion") == "v1" and owner.get("kind") == "Event":
            errors.append(invalid(path, owner, "/v1, Kind=Event is disallowed from being an owner"))
        if owner.get("controller") is True:
            controllers.append(f"{owner.get('kind')}/{owner.get('name')}")
    if len(controllers) > 1:
        errors.append(
            invalid(
                "metadata.ownerReferences",
                owners,
                f'Only one reference can have Controller set to true. Found "true" in references for '
                f"{controllers[0]} and {controllers[1]}",
            )
        )
    return errors


def _word(field: str) -> str:
    return "version" if field == "apiVersion" else field
