"""Applies the levels that a namespace's labels name: refuses pods (enforce), warns about pods and templates (warn).

`audit` labels are validated and have no effect: this server writes no audit log. There are no exemptions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec

from volcano.api.errors import Forbidden, Invalid
from volcano.api.field_errors import invalid
from volcano.api.meta import JSON
from volcano.embedded.apiserver.admitting.pod_security.confinement_checks import APP_ARMOR_ANNOTATION
from volcano.embedded.apiserver.admitting.pod_security.levels import LATEST, LATEST_MINOR, LEVELS, minor_of, violations
from volcano.embedded.apiserver.admitting.pod_security.pod_parts import PodParts, part
from volcano.embedded.apiserver.store.contract import ObjectKey, Store
from volcano.machinery.admission import CREATE, UPDATE, Attributes

PREFIX: Final = "pod-security.kubernetes.io/"
MODES: Final = ("enforce", "audit", "warn")
_TEMPLATE: Final = ("spec", "template")
_TEMPLATES: Final[Mapping[str, tuple[str, ...]]] = {
    "replicationcontrollers": _TEMPLATE,
    "podtemplates": ("template",),
    "deployments.apps": _TEMPLATE,
    "replicasets.apps": _TEMPLATE,
    "statefulsets.apps": _TEMPLATE,
    "daemonsets.apps": _TEMPLATE,
    "jobs.batch": _TEMPLATE,
    "cronjobs.batch": ("spec", "jobTemplate", "spec", "template"),
}


class LevelOfMode(NamedTuple):
    """The level that a namespace has for one mode, and the version as its label writes it."""

    level: str
    version: str

    @property
    def minor(self) -> int:
        found = minor_of(self.version)
        return found if found is not None else LATEST_MINOR


def check_pod_security(store: Store, attributes: Attributes) -> list[str]:
    """Refuse a pod that violates the enforced level; warnings for what violates the level of `warn`."""
    row = attributes.resource.qualified
    if attributes.object is None or attributes.operation not in (CREATE, UPDATE):
        return []
    if row == "namespaces" and not attributes.subresource:
        _check_labels(attributes.name, _labels(attributes.object))
        return []
    path = () if row == "pods" else _TEMPLATES.get(row)
    if path is None or attributes.subresource not in ("", "ephemeralcontainers"):
        return []
    levels = _levels_of(store, attributes.namespace)
    if not levels:
        return []
    pod = _pod_at(attributes.object, path)
    if row == "pods":
        if attributes.operation == UPDATE and attributes.old is not None and not _matters(attributes.old, pod):
            return []
        refused = _violated(levels, "enforce", pod)
        if refused:
            raise Forbidden(f'pods "{attributes.name}" is forbidden: violates PodSecurity {refused}')
    warned = _violated(levels, "warn", pod)
    return [f"would violate PodSecurity {warned}"] if warned else []


def _violated(levels: Mapping[str, LevelOfMode], mode: str, pod: PodParts) -> str:
    wanted = levels.get(mode)
    found = violations(pod, wanted.level, wanted.minor) if wanted is not None else []
    return f'"{wanted.level}:{wanted.version}": {", ".join(map(str, found))}' if wanted is not None and found else ""


def _levels_of(store: Store, namespace: str) -> Mapping[str, LevelOfMode]:
    stored = store.find(ObjectKey("namespaces", "", namespace))
    return _read_levels(stored.raw) if stored is not None else {}


@lru_cache(maxsize=1024)
def _read_levels(raw: bytes) -> Mapping[str, LevelOfMode]:
    """A level that is none, of a namespace from before this check, counts as restricted, as in Kubernetes."""
    labels = _labels(msgspec.json.decode(raw))
    levels = {}
    for mode in MODES:
        level = labels.get(PREFIX + mode)
        if level is not None:
            version = labels.get(f"{PREFIX}{mode}-version", LATEST)
            is_known = minor_of(version) is not None
            levels[mode] = LevelOfMode(level if level in LEVELS else "restricted", version if is_known else LATEST)
    return levels


def _labels(body: JSON) -> dict[str, str]:
    return {name: str(value) for name, value in part(part(body, "metadata"), "labels").items()}


def _check_labels(name: str, labels: Mapping[str, str]) -> None:
    rules: tuple[tuple[str, Callable[[str], bool], str], ...] = (
        ("", lambda value: value in LEVELS, f"must be one of {', '.join(LEVELS)}"),
        ("-version", lambda value: minor_of(value) is not None, 'must be "latest" or "v1.x"'),
    )
    faults = [
        invalid(f"metadata.labels[{label}]", labels[label], detail)
        for mode in MODES
        for suffix, is_valid, detail in rules
        if (label := f"{PREFIX}{mode}{suffix}") in labels and not is_valid(labels[label])
    ]
    if faults:
        raise Invalid.of("Namespace", name, faults)


def _pod_at(body: JSON, path: tuple[str, ...]) -> PodParts:
    for name in path:
        body = part(body, name)
    annotations: Any = part(part(body, "metadata"), "annotations")
    return PodParts(annotations, part(body, "spec"))


def _matters(old: JSON, pod: PodParts) -> bool:
    """Whether an update may make a pod less safe: other images, further containers, other AppArmor annotations."""
    before = _pod_at(old, ())
    return _images(before) != _images(pod) or _profiles(before) != _profiles(pod)


def _images(pod: PodParts) -> list[tuple[Any, Any]]:
    return [(each.get("name"), each.get("image")) for each in pod.containers()]


def _profiles(pod: PodParts) -> dict[str, str]:
    return {name: value for name, value in pod.annotations.items() if name.startswith(APP_ARMOR_ANNOTATION)}
