"""Annotations with a meaning to Kubernetes itself: readable, and in agreement with the fields that replaced them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from volcano.api.fields import Field
from volcano.api.pods.validation.paths import check_descending
from volcano.api.pods.validation.placement import check_tolerations

MIRROR: Final = "kubernetes.io/config.mirror"
TOLERATIONS: Final = "scheduler.alpha.kubernetes.io/tolerations"
DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
SECCOMP_POD: Final = "seccomp.security.alpha.kubernetes.io/pod"
SECCOMP_CONTAINER: Final = "container.seccomp.security.alpha.kubernetes.io/"
APP_ARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"
DEFAULT_PROFILES: Final = ("runtime/default", "docker/default")


def check_known_annotations(annotations: Mapping[str, str], place: Field, spec: Field) -> None:
    containers = {name for name, _ in _containers(spec)}
    if MIRROR in annotations and not spec.text("nodeName"):
        place.index(MIRROR).invalid("must set spec.nodeName if mirror pod annotation is set", annotations[MIRROR])
    if annotations.get(TOLERATIONS):
        _check_tolerations(annotations[TOLERATIONS], place)
    if DELETION_COST in annotations and not _is_cost(annotations[DELETION_COST]):
        place.index(DELETION_COST).invalid("must be a 32bit integer", annotations[DELETION_COST])
    for key, value in annotations.items():
        if key == SECCOMP_POD or key.startswith(SECCOMP_CONTAINER):
            _check_seccomp(place.at(key), value)
        elif key.startswith(APP_ARMOR):
            name = key.removeprefix(APP_ARMOR)
            if name not in containers:
                place.index(key).invalid("container not found", name)
            if value not in ("", "runtime/default", "unconfined") and not value.startswith("localhost/"):
                place.index(key).invalid(f'invalid AppArmor profile name: "{value}"', value)


def check_profiles_agree(annotations: Mapping[str, str], spec: Field) -> None:
    """The old annotations for seccomp and AppArmor must say what the fields say."""
    pod = spec.at("securityContext")
    if SECCOMP_POD in annotations and pod.has("seccompProfile"):
        _check_same(pod.at("seccompProfile"), annotations[SECCOMP_POD], "seccomp")
    for name, container in _containers(spec):
        context = container.at("securityContext")
        seccomp, armor = annotations.get(SECCOMP_CONTAINER + name), annotations.get(APP_ARMOR + name)
        if seccomp is not None and context.has("seccompProfile"):
            _check_same(context.at("seccompProfile"), seccomp, "seccomp")
        own = context.at("appArmorProfile")
        profile = own if own.is_set else Field(pod.at("appArmorProfile").value, own.path, own.errors)
        if armor is not None and profile.is_set and spec.at("os").text("name") != "windows":
            _check_same(profile, armor, "apparmor")


def _containers(spec: Field) -> list[tuple[str, Field]]:
    kinds = ("initContainers", "containers", "ephemeralContainers")
    return [(container.text("name"), container) for kind in kinds for container in spec.each(kind)]


def _check_same(profile: Field, annotation: str, what: str) -> None:
    match profile.text("type"):
        case "Unconfined":
            agrees = annotation == "unconfined"
        case "RuntimeDefault":
            agrees = annotation in (DEFAULT_PROFILES if what == "seccomp" else DEFAULT_PROFILES[:1])
        case "Localhost":
            agrees = annotation.startswith("localhost/")
            if agrees and annotation.removeprefix("localhost/") != profile.text("localhostProfile"):
                profile.at("localhostProfile").forbidden(f"{what} profile in annotation and field must match")
        case _:
            agrees = True
    if not agrees:
        profile.at("type").forbidden(f"{what} type in annotation and field must match")


def _check_seccomp(place: Field, value: str) -> None:
    if value.startswith("localhost/"):
        check_descending(place, value.removeprefix("localhost/"))
    elif value not in (*DEFAULT_PROFILES, "unconfined"):
        place.invalid("must be a valid seccomp profile", value)


def _check_tolerations(text: str, place: Field) -> None:
    try:
        tolerations = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        place.invalid(str(error), TOLERATIONS)
        return
    if tolerations is not None and not isinstance(tolerations, list):
        place.invalid("it must hold a list", TOLERATIONS)
        return
    listed = place.at(TOLERATIONS)
    check_tolerations([listed.index(i, value) for i, value in enumerate(tolerations or ())])


def _is_cost(text: str) -> bool:
    digits = text.removeprefix("-")
    if not digits.isascii() or not digits.isdecimal() or len(digits) > 10 or text == "-0":
        return False
    return (digits == "0" or digits[0] != "0") and -(2**31) <= int(text) < 2**31
