"""PersistentVolumeClaims written inside other objects: ephemeral volumes of pods."""

from __future__ import annotations

from typing import Final

from volcano.api import names
from volcano.api.fields import Field
from volcano.api.pods.validation.labels import check_annotations, check_label_selector, check_labels

ACCESS_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")


def check_claim_template(template: Field) -> None:
    metadata = template.at("metadata")
    check_annotations(metadata, "annotations")
    check_labels(metadata, "labels")
    for name in sorted(metadata.value) if isinstance(metadata.value, dict) else ():
        if name not in ("annotations", "labels") and metadata.value[name]:
            metadata.at(str(name)).forbidden("cannot be set")
    check_claim_spec(template.at("spec"))


def check_claim_spec(spec: Field) -> None:
    modes = spec.texts("accessModes")
    place = spec.at("accessModes")
    if not modes:
        place.required("at least 1 access mode is required")
    check_label_selector(spec.at("selector"))
    for mode in modes:
        if mode not in ACCESS_MODES:
            Field(mode, place.path, place.errors).unsupported(ACCESS_MODES)
    if "ReadWriteOncePod" in modes and any(mode in ACCESS_MODES[:3] for mode in modes):
        place.forbidden("may not use ReadWriteOncePod with other access modes")
    _check_size(spec)
    for name in ("storageClassName", "volumeAttributesClassName"):
        if spec.text(name):
            spec.at(name).check(names.subdomain_problems(spec.text(name)))
    if spec.has("volumeMode") and spec.text("volumeMode") not in ("Block", "Filesystem"):
        spec.at("volumeMode").unsupported(("Block", "Filesystem"))
    for name in ("dataSource", "dataSourceRef"):
        if spec.has(name):
            _check_data_source(spec.at(name))
    _check_data_sources_agree(spec)


def _check_size(spec: Field) -> None:
    place = Field(
        spec.at("resources", "requests", "storage").value, f"{spec.at('resources').path}[storage]", spec.errors
    )
    if not place.is_set:
        place.required()
        return
    amount = place.as_quantity()
    if amount is not None and amount.nanos <= 0:
        place.invalid("must be greater than zero", str(amount))


def _check_data_source(source: Field) -> None:
    for name in ("name", "kind"):
        if not source.text(name):
            source.at(name).required()
    group, kind, namespace = source.text("apiGroup"), source.text("kind"), source.text("namespace")
    if not group and kind != "PersistentVolumeClaim":
        source.invalid("must be 'PersistentVolumeClaim' when referencing the default apiGroup", kind)
    if group:
        source.at("apiGroup").check(names.subdomain_problems(group))
    if namespace:
        source.at("namespace").check(names.dns_label_problems(namespace))


def _check_data_sources_agree(spec: Field) -> None:
    if not (spec.has("dataSource") and spec.has("dataSourceRef")):
        return
    source, reference = spec.at("dataSource"), spec.at("dataSourceRef")
    if reference.text("namespace"):
        spec.invalid("may not be specified when dataSourceRef.namespace is specified", source.path)
    elif any(source.at(name).value != reference.at(name).value for name in ("apiGroup", "kind", "name")):
        spec.invalid("must match dataSourceRef", source.path)
