"""Where a container sees its volumes: mounts and raw devices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from volcano.api.fields import Field
from volcano.api.pods.validation.paths import check_descending

PROPAGATIONS: Final = ("Bidirectional", "HostToContainer", "None")


def check_mounts(container: Field, volumes: Mapping[str, Field]) -> None:
    everything = container.at("volumeMounts")
    devices = {device.text("name"): device.text("devicePath") for device in container.each("volumeDevices")}
    used: set[str] = set()
    for mount in container.each("volumeMounts"):
        name, path = mount.text("name"), mount.text("mountPath")
        if not name:
            mount.at("name").required()
        if name not in volumes:
            mount.at("name").not_found(name)
        if not path:
            mount.at("mountPath").required()
        if path in used:
            mount.at("mountPath").invalid("must be unique", path)
        used.add(path)
        if name in devices:
            mount.at("name").invalid("must not already exist in volumeDevices", name)
        if path in devices.values():
            mount.at("mountPath").invalid("must not already exist as a path in volumeDevices", path)
        _check_sub_path(everything, mount)
        _check_propagation(everything, mount, is_privileged=container.at("securityContext").truth("privileged"))


def check_devices(container: Field, volumes: Mapping[str, Field]) -> None:
    mounts = {mount.text("name"): mount.text("mountPath") for mount in container.each("volumeMounts")}
    used_names: set[str] = set()
    used_paths: set[str] = set()
    for device in container.each("volumeDevices"):
        name, path = device.text("name"), device.text("devicePath")
        volume = volumes.get(name)
        if not name:
            device.at("name").required()
        if name in used_names:
            device.at("name").invalid("must be unique", name)
        if volume is None:
            device.at("name").not_found(name)
        elif not (volume.has("persistentVolumeClaim") or volume.has("ephemeral")):
            device.at("name").invalid(
                "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode", name
            )
        if not path:
            device.at("devicePath").required()
        if path in used_paths:
            device.at("devicePath").invalid("must be unique", path)
        if ".." in path.split("/"):
            device.at("devicePath").invalid("can not contain backsteps ('..')", path)
        else:
            used_paths.add(path)
        if name in mounts:
            device.at("name").invalid("must not already exist in volumeMounts", name)
        if path in mounts.values():
            device.at("devicePath").invalid("must not already exist as a path in volumeMounts", path)
        if name:
            used_names.add(name)


def _check_sub_path(everything: Field, mount: Field) -> None:
    plain, expression = mount.text("subPath"), mount.text("subPathExpr")
    if plain:
        check_descending(everything.at("subPath"), plain)
    if expression:
        if plain:
            mount.at("subPathExpr").invalid("subPathExpr and subPath are mutually exclusive")
        check_descending(everything.at("subPathExpr"), expression)


def _check_propagation(everything: Field, mount: Field, *, is_privileged: bool) -> None:
    given = mount.at("mountPropagation")
    mode, place = given.as_text(), Field(given.value, everything.at("mountPropagation").path, mount.errors)
    if given.is_set and mode not in PROPAGATIONS:
        place.unsupported(PROPAGATIONS)
    if mode == "Bidirectional" and not is_privileged:
        place.forbidden("Bidirectional mount propagation is available only to privileged containers")
    recursive = mount.at("recursiveReadOnly")
    place = Field(recursive.value, everything.at("recursiveReadOnly").path, mount.errors)
    match recursive.as_text():
        case "Enabled" | "IfPossible":
            if not mount.truth("readOnly"):
                place.forbidden("may only be specified when readOnly is true")
            if given.is_set and mode != "None":
                place.forbidden("may only be specified when mountPropagation is None or not specified")
        case "Disabled":
            pass
        case _ if recursive.is_set:
            place.unsupported(("Disabled", "Enabled", "IfPossible"))
