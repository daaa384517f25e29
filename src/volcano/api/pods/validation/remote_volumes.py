"""Volume sources of cloud disks and network file systems: mostly, which fields may not be missing."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from volcano.api import names
from volcano.api.fields import Field
from volcano.api.pods.validation.paths import check_needed

Check = Callable[[Field], None]
IQN: Final = re.compile(r"iqn\.\d{4}-\d{2}\.([A-Za-z0-9.-]+)(:[^,;*&$|\s]+)")
EUI: Final = re.compile(r"eui.[A-Za-z0-9]{16}")
NAA: Final = re.compile(r"naa.[A-Za-z0-9]{32}")
MANAGED_DISK: Final = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
BLOB_DISK: Final = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"


def needs(*fields: str) -> Check:
    """A source of which only this is asked: these fields are there."""
    return lambda source: check_needed(source, *fields)


def _disk(name: str) -> Check:
    def check(source: Field) -> None:
        check_needed(source, name)
        if not 0 <= source.number("partition") <= 255:
            source.at("partition").invalid("must be between 1 and 255, inclusive")

    return check


def _iscsi(source: Field) -> None:
    check_needed(source, "targetPortal", "iqn")
    if source.text("iqn"):
        _check_iqn(source.at("iqn"), source.text("iqn"))
    _check_lun(source)
    authenticates = source.truth("chapAuthDiscovery") or source.truth("chapAuthSession")
    if authenticates and not source.has("secretRef"):
        source.at("secretRef").required()
    if source.has("initiatorName"):
        _check_iqn(source.at("initiatorname"), source.text("initiatorName"))


def _check_iqn(place: Field, value: str) -> None:
    forms = {"iqn": IQN, "eui": EUI, "naa": NAA}
    form = forms.get(value[:3])
    if form is None:
        place.invalid("must be valid format starting with iqn, eui, or naa", value)
    elif not form.fullmatch(value):
        place.invalid("must be valid format", value)


def _check_lun(source: Field) -> None:
    if not 0 <= source.number("lun") <= 255:
        source.at("lun").invalid("must be between 0 and 255, inclusive")


def _fibre_channel(source: Field) -> None:
    targets, ids = source.texts("targetWWNs"), source.texts("wwids")
    if not targets and not ids:
        source.at("targetWWNs").required("must specify either targetWWNs or wwids, but not both")
    if targets and ids:
        source.at("targetWWNs").invalid("targetWWNs and wwids can not be specified simultaneously")
    if targets and not source.has("lun"):
        source.at("lun").required("lun is required if targetWWNs is specified")
    elif targets:
        _check_lun(source)


def _flocker(source: Field) -> None:
    name, uid = source.text("datasetName"), source.text("datasetUUID")
    if not name and not uid:
        source.required("one of datasetName and datasetUUID is required")
    if name and uid:
        source.invalid("datasetName and datasetUUID can not be specified simultaneously", "resource")
    if "/" in name:
        source.at("datasetName").invalid("must not contain '/'")


def _quobyte(source: Field) -> None:
    pairs = "must be a host:port pair or multiple pairs separated by commas"
    registry = source.text("registry")
    if not registry:
        source.at("registry").required(pairs)
    elif names.byte_length(source.text("tenant")) >= 65:
        source.at("tenant").required("must be a UUID and may not exceed a length of 64 characters")
    else:
        for pair in registry.split(","):
            if not re.fullmatch(r"(\[[^\[\]]*\]|[^:\[\]]*):[^:\[\]]*", pair):
                source.at("registry").invalid(pairs)
    check_needed(source, "volume")


def _with_secret(*fields: str) -> Check:
    def check(source: Field) -> None:
        check_needed(source, *fields)
        if source.has("secretRef") and not source.at("secretRef").text("name"):
            source.at("secretRef", "name").required()

    return check


def _flex_volume(source: Field) -> None:
    check_needed(source, "driver")
    for key, _ in source.entries("options"):
        namespace = key.lower().partition("/")[0]
        if f".{namespace}".endswith((".kubernetes.io", ".k8s.io")):
            source.at("options").index(key).invalid("kubernetes.io and k8s.io namespaces are reserved", key)


def _azure_disk(source: Field) -> None:
    check_needed(source, "diskName", "diskURI")
    source.at("cachingMode").one_of("None", "ReadOnly", "ReadWrite")
    source.at("kind").one_of("Dedicated", "Managed", "Shared")
    kind, uri = source.text("kind"), source.text("diskURI")
    if kind == "Managed" and not uri.startswith("/subscriptions/"):
        Field(uri, source.at("diskURI").path, source.errors).unsupported((MANAGED_DISK,))
    if kind and kind != "Managed" and not uri.startswith("https://"):
        Field(uri, source.at("diskURI").path, source.errors).unsupported((BLOB_DISK,))


def _storage_os(source: Field) -> None:
    _with_secret("volumeName")(source)
    for name in ("volumeName", "volumeNamespace"):
        if source.text(name):
            source.at(name).check(names.dns_label_problems(source.text(name)))


REMOTE_SOURCES: Final[Mapping[str, Check]] = {
    "gcePersistentDisk": _disk("pdName"),
    "awsElasticBlockStore": _disk("volumeID"),
    "iscsi": _iscsi,
    "glusterfs": needs("endpoints", "path"),
    "flocker": _flocker,
    "rbd": needs("monitors", "image"),
    "cinder": _with_secret("volumeID"),
    "cephfs": needs("monitors"),
    "quobyte": _quobyte,
    "fc": _fibre_channel,
    "flexVolume": _flex_volume,
    "azureFile": needs("secretName", "shareName"),
    "vsphereVolume": needs("volumePath"),
    "photonPersistentDisk": needs("pdID"),
    "portworxVolume": needs("volumeID"),
    "azureDisk": _azure_disk,
    "storageos": _storage_os,
    "scaleIO": needs("gateway", "system", "volumeName"),
}
