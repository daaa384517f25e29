"""Environment variables of a container, and the fields of the pod they may take their values from."""

from __future__ import annotations

from typing import Final

from volcano.api import names
from volcano.api.fields import Field
from volcano.api.pods.validation.paths import check_needed, check_no_backsteps

ENV_FIELDS: Final = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
    "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
)  # fmt: skip
FILE_FIELDS: Final = ("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")
KNOWN_FIELDS: Final = frozenset(
    {*ENV_FIELDS, *FILE_FIELDS, "spec.restartPolicy", "spec.schedulerName", "status.phase", "spec.host"}
)
RESOURCE_FIELDS: Final = tuple(
    f"{kind}.{name}" for kind in ("limits", "requests") for name in ("cpu", "ephemeral-storage", "memory")
)
BYTE_DIVISORS: Final = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
SOURCES: Final = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")


def check_env(container: Field) -> None:
    for variable in container.each("env"):
        name = variable.text("name")
        if not name:
            variable.at("name").required()
        else:
            variable.at("name").check(names.env_name_problems(name))
        if variable.has("valueFrom"):
            _check_value_from(variable)
    for source in container.each("envFrom"):
        _check_env_from(container.at("envFrom"), source)


def check_field_ref(place: Field, allowed: tuple[str, ...]) -> None:
    """A field of the pod: one of those allowed here, or one label or annotation by its key."""
    version, wanted = place.text("apiVersion") or "v1", place.text("fieldPath")
    at = place.at("fieldPath")
    if not wanted:
        at.required()
        return
    if version != "v1":
        at.invalid(f"error converting fieldPath: unsupported pod version: {version}")
        return
    head, bracket, rest = wanted.partition("['")
    if head and bracket and rest.endswith("']"):
        key = rest.removesuffix("']")
        if head == "metadata.annotations":
            for problem in names.qualified_name_problems(key.lower()):
                place.invalid(problem, key.lower())
        elif head == "metadata.labels":
            for problem in names.qualified_name_problems(key):
                place.invalid(problem, key)
        else:
            at.invalid(f"error converting fieldPath: field label does not support subscript: {wanted}")
    elif wanted not in KNOWN_FIELDS:
        at.invalid(f"error converting fieldPath: field label not supported: {wanted}")
    else:
        path = "spec.nodeName" if wanted == "spec.host" else wanted
        if path not in allowed:
            Field(path, at.path, at.errors).unsupported(allowed)


def check_resource_ref(place: Field, *, in_volume: bool) -> None:
    resource = place.text("resource")
    paged = resource.startswith(("requests.hugepages-", "limits.hugepages-"))
    if in_volume and not place.text("containerName"):
        place.at("containerName").required()
    elif not resource:
        place.at("resource").required()
    elif resource not in RESOURCE_FIELDS and not paged:
        place.at("resource").unsupported(RESOURCE_FIELDS)
    divisor = place.at("divisor").as_quantity()
    if divisor is None or divisor.nanos == 0:
        return
    what = "hugepages" if paged else resource.partition(".")[2].replace("ephemeral-storage", "local ephemeral storage")
    if resource.endswith(".cpu"):
        if str(divisor) not in ("1m", "1"):
            place.at("divisor").invalid("only divisor's values 1m and 1 are supported with the cpu resource", resource)
    elif (resource in RESOURCE_FIELDS or paged) and str(divisor) not in BYTE_DIVISORS:
        listed = ", ".join(BYTE_DIVISORS)
        place.at("divisor").invalid(f"only divisor's values {listed} are supported with the {what} resource", resource)


def _check_value_from(variable: Field) -> None:
    source = variable.at("valueFrom")
    given = [name for name in SOURCES if source.has(name)]
    if source.has("fieldRef"):
        check_field_ref(source.at("fieldRef"), ENV_FIELDS)
    if source.has("resourceFieldRef"):
        check_resource_ref(source.at("resourceFieldRef"), in_volume=False)
    for name in ("configMapKeyRef", "secretKeyRef"):
        if source.has(name):
            _check_key_ref(source.at(name))
    if source.has("fileKeyRef"):
        _check_file_key(source.at("fileKeyRef"))
    if not given:
        *first, last = (f"`{name}`" for name in SOURCES)
        source.invalid(f"must specify one of: {', '.join(first)} or {last}", "")
    elif variable.text("value"):
        source.invalid("may not be specified when `value` is not empty", "")
    elif len(given) > 1:
        source.invalid("may not have more than one field specified at a time", "")


def _check_key_ref(place: Field) -> None:
    name, key = place.text("name"), place.text("key")
    for problem in names.subdomain_problems(name):
        place.at("name").invalid(problem, name)
    if not key:
        place.at("key").required()
    else:
        place.at("key").check(names.config_key_problems(key))


def _check_file_key(place: Field) -> None:
    check_needed(place, "key", "volumeName", "path")
    if key := place.text("key"):
        place.at("key").check(names.env_name_problems(key))
    if volume := place.text("volumeName"):
        place.at("volumeName").check(names.dns_label_problems(volume))
    check_no_backsteps(place.at("path"), place.text("path"))


def _check_env_from(everything: Field, source: Field) -> None:
    if prefix := source.text("prefix"):
        source.at("prefix").check(names.env_name_problems(prefix))
    given = [name for name in ("configMapRef", "secretRef") if source.has(name)]
    for kind in given:
        place = source.at(kind, "name")
        if not place.as_text():
            place.required()
        else:
            place.check(names.subdomain_problems(place.as_text().removesuffix("-")))
    if not given:
        everything.invalid("must specify one of: `configMapRef` or `secretRef`", "")
    elif len(given) > 1:
        everything.invalid("may not have more than one field specified at a time", "")
