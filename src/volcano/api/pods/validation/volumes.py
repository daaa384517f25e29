"""Volumes of a pod: exactly one source each, and what each source must say. Projected ones are in projected.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from volcano.api import names
from volcano.api.fields import Field
from volcano.api.pods.validation.claims import check_claim_template
from volcano.api.pods.validation.environment import FILE_FIELDS
from volcano.api.pods.validation.paths import (
    check_descending,
    check_mode,
    check_needed,
    check_no_backsteps,
)
from volcano.api.pods.validation.projected import check_downward_file, check_key_to_path, check_sources
from volcano.api.pods.validation.remote_volumes import REMOTE_SOURCES

HOST_PATH_TYPES: Final = (
    "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket",
)  # fmt: skip
PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
Check = Callable[[Field], None]


def check_volumes(spec: Field) -> dict[str, Field]:
    """The sound volumes by name, for mounts to refer to; the others are noted."""
    sound: dict[str, Field] = {}
    for volume in spec.each("volumes"):
        before, name = len(volume.errors), volume.text("name")
        _check_source(volume)
        if not name:
            volume.at("name").required()
        else:
            volume.at("name").check(names.dns_label_problems(name))
        if name in sound:
            volume.at("name").duplicate()
        if len(volume.errors) == before:
            sound[name] = volume
    return sound


def _check_source(volume: Field) -> None:
    """A volume that says nothing of its source is an emptyDir, by default."""
    given = [source for source in SOURCES if volume.has(source)]
    for extra in given[1:]:
        volume.at(_MISSPELT.get(extra, extra)).forbidden("may not specify more than 1 volume type")
    if given:
        place = volume.at(given[0])
        if not isinstance(place.value, dict):
            place.is_no("an object")
            return
        SOURCES[given[0]](Field(place.value, volume.at(_RENAMED.get(given[0], given[0])).path, volume.errors))
    if volume.has("iscsi") and volume.at("iscsi").has("initiatorName"):
        target = f"{volume.text('name')}:{volume.at('iscsi').text('targetPortal')}"
        if names.byte_length(target) > 64:
            volume.at("name").invalid(
                "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if "
                "iscsi.initiatorName is specified.",
                volume.text("name"),
            )


_RENAMED: Final = {"gcePersistentDisk": "persistentDisk"}
_MISSPELT: Final = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}
"""Kubernetes' own spelling in these two messages."""


def _empty_dir(source: Field) -> None:
    limit = source.at("sizeLimit").as_quantity()
    if limit is not None and limit.nanos < 0:
        source.at("sizeLimit").forbidden("SizeLimit field must be a valid resource quantity")


def _host_path(source: Field) -> None:
    path, kind = source.text("path"), source.at("type")
    if not path:
        source.at("path").required()
        return
    check_no_backsteps(source.at("path"), path)
    if kind.is_set and kind.as_text() not in HOST_PATH_TYPES:
        kind.unsupported(HOST_PATH_TYPES)


def _git_repo(source: Field) -> None:
    check_needed(source, "repository")
    check_descending(source.at("directory"), source.text("directory"))


def _secret(source: Field) -> None:
    check_needed(source, "secretName")
    _check_files(source)


def _config_map(source: Field) -> None:
    check_needed(source, "name")
    _check_files(source)


def _check_files(source: Field) -> None:
    check_mode(source.at("defaultMode"))
    for entry in source.each("items"):
        check_key_to_path(entry)


def _downward_api(source: Field) -> None:
    check_mode(source.at("defaultMode"))
    for file in source.each("items"):
        check_downward_file(file, source, FILE_FIELDS)


def _projected(source: Field) -> None:
    check_mode(source.at("defaultMode"))
    check_sources(source)


def _csi(source: Field) -> None:
    driver = source.text("driver")
    if not driver:
        source.at("driver").required()
    else:
        if names.byte_length(driver) > names.LABEL_LENGTH:
            source.at("driver").too_long(names.LABEL_LENGTH)
        source.at("driver").check(names.subdomain_problems(driver.lower()))
    if source.has("nodePublishSecretRef"):
        name = source.at("nodePublishSecretRef").text("name")
        if not name:
            source.at("nodePublishSecretRef", "name").required()
        for problem in names.subdomain_problems(name) if name else ():
            source.at("name").invalid(problem, name)


def _ephemeral(source: Field) -> None:
    if not source.has("volumeClaimTemplate"):
        source.at("volumeClaimTemplate").required()
    else:
        check_claim_template(source.at("volumeClaimTemplate"))


def _image(source: Field) -> None:
    source.at("pullPolicy").one_of(*PULL_POLICIES)


def _nfs(source: Field) -> None:
    check_needed(source, "server", "path")
    if not source.text("path").startswith("/"):
        source.at("path").invalid("must be an absolute path", source.text("path"))


SOURCES: Final[Mapping[str, Check]] = {
    "emptyDir": _empty_dir,
    "hostPath": _host_path,
    "gitRepo": _git_repo,
    "gcePersistentDisk": REMOTE_SOURCES["gcePersistentDisk"],
    "awsElasticBlockStore": REMOTE_SOURCES["awsElasticBlockStore"],
    "secret": _secret,
    "nfs": _nfs,
    "iscsi": REMOTE_SOURCES["iscsi"],
    "glusterfs": REMOTE_SOURCES["glusterfs"],
    "flocker": REMOTE_SOURCES["flocker"],
    "persistentVolumeClaim": lambda source: check_needed(source, "claimName"),
    "rbd": REMOTE_SOURCES["rbd"],
    "cinder": REMOTE_SOURCES["cinder"],
    "cephfs": REMOTE_SOURCES["cephfs"],
    "quobyte": REMOTE_SOURCES["quobyte"],
    "downwardAPI": _downward_api,
    "fc": REMOTE_SOURCES["fc"],
    "flexVolume": REMOTE_SOURCES["flexVolume"],
    "configMap": _config_map,
    "azureFile": REMOTE_SOURCES["azureFile"],
    "vsphereVolume": REMOTE_SOURCES["vsphereVolume"],
    "photonPersistentDisk": REMOTE_SOURCES["photonPersistentDisk"],
    "portworxVolume": REMOTE_SOURCES["portworxVolume"],
    "azureDisk": REMOTE_SOURCES["azureDisk"],
    "storageos": REMOTE_SOURCES["storageos"],
    "projected": _projected,
    "scaleIO": REMOTE_SOURCES["scaleIO"],
    "csi": _csi,
    "ephemeral": _ephemeral,
    "image": _image,
}
"""In the order in which Kubernetes looks: of several sources the first is checked, the others are forbidden."""
