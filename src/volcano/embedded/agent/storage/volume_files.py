"""The files of configMap, secret, downwardAPI and projected volumes. Pure; volumes.py writes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, Final

import msgspec

from volcano.api.kubelet import AgentPod, AgentVolume
from volcano.api.meta import JSON
from volcano.embedded.agent.containers.environment import Missing, References, field_value, resource_value
from volcano.embedded.agent.storage.service_account import TOKEN_LIFETIME_SECONDS

DEFAULT_MODE: Final = 0o644
MAX_FILES_PER_VOLUME: Final = 10_000


class File(msgspec.Struct, frozen=True):
    """One file of a volume."""

    content: bytes
    mode: int = DEFAULT_MODE


class NeededObjects(msgspec.Struct, frozen=True):
    """The API objects that must be read before the files of a pod's volumes are known."""

    config_maps: frozenset[str] = frozenset()
    secrets: frozenset[str] = frozenset()
    tokens: tuple[JSON, ...] = ()


def needed_by(pod: AgentPod) -> NeededObjects:
    """Every ConfigMap, Secret and token that a pod's volumes and environment refer to."""
    config_maps: set[str] = set()
    secrets: set[str] = set()
    tokens: list[JSON] = []
    for volume in pod.spec.volumes:
        for source in _sources(volume):
            if (each := source.get("configMap")) is not None:
                config_maps.add(str(each.get("name", "")))
            if (each := source.get("secret")) is not None:
                secrets.add(str(each.get("secretName") or each.get("name", "")))
            if (each := source.get("serviceAccountToken")) is not None:
                tokens.append(each)
    for container in pod.all_containers:
        for variable in container.env:
            source = variable.value_from or {}
            config_maps |= _named(source.get("configMapKeyRef"))
            secrets |= _named(source.get("secretKeyRef"))
        for origin in container.env_from:
            config_maps |= _named(origin.config_map_ref)
            secrets |= _named(origin.secret_ref)
    return NeededObjects(frozenset(config_maps - {""}), frozenset(secrets - {""}), tuple(tokens))


def token_life(pod: AgentPod) -> timedelta | None:
    """The shortest lifetime of a pod's tokens; None when it has none."""
    seconds = [int(token.get("expirationSeconds") or TOKEN_LIFETIME_SECONDS) for token in needed_by(pod).tokens]
    return timedelta(seconds=min(seconds)) if seconds else None


def files_of(
    pod: AgentPod, volume: AgentVolume, references: References, tokens: Mapping[str, bytes] | None = None
) -> dict[str, File]:
    """Path below the mount point → file. Missing when an object or key that is not optional does not exist."""
    found: dict[str, File] = {}
    for source in _sources(volume):
        found |= _files_from(pod, source, references, tokens or {})
    if len(found) > MAX_FILES_PER_VOLUME:
        raise Missing(f"volume {volume.name} has more than {MAX_FILES_PER_VOLUME} files")
    return found


def is_made_of_files(volume: AgentVolume) -> bool:
    return any(
        source is not None for source in (volume.config_map, volume.secret, volume.downward_api, volume.projected)
    )


def _sources(volume: AgentVolume) -> Iterable[JSON]:
    """Each source with its file mode, in the form of a projected volume's sources."""
    if volume.config_map is not None:
        yield {"configMap": volume.config_map, "mode": volume.config_map.get("defaultMode")}
    if volume.secret is not None:
        yield {"secret": volume.secret, "mode": volume.secret.get("defaultMode")}
    if volume.downward_api is not None:
        yield {"downwardAPI": volume.downward_api, "mode": volume.downward_api.get("defaultMode")}
    if volume.projected is not None:
        for source in volume.projected.get("sources") or ():
            yield {**source, "mode": volume.projected.get("defaultMode")}


def _files_from(pod: AgentPod, source: JSON, references: References, tokens: Mapping[str, bytes]) -> dict[str, File]:
    mode = _mode(source.get("mode"), DEFAULT_MODE)
    if (each := source.get("configMap")) is not None:
        return _entries("configmap", str(each.get("name", "")), each, references.config_maps, mode)
    if (each := source.get("secret")) is not None:
        name = str(each.get("secretName") or each.get("name", ""))
        return _entries("secret", name, each, references.secrets, mode)
    if (each := source.get("downwardAPI")) is not None:
        return {
            safe_path(str(item.get("path", ""))): File(_item(pod, item, references), _mode(item.get("mode"), mode))
            for item in each.get("items") or ()
        }
    if (each := source.get("serviceAccountToken")) is not None:
        path = str(each.get("path", "token"))
        return {safe_path(path): File(tokens[path], mode)} if path in tokens else {}
    return {}


def _entries(
    kind: str, name: str, source: JSON, known: Mapping[str, Mapping[str, bytes]], mode: int
) -> dict[str, File]:
    if name not in known:
        if source.get("optional"):
            return {}
        raise Missing(f'{kind} "{name}" not found')
    content, items = known[name], source.get("items")
    if not items:
        return {safe_path(key): File(value, mode) for key, value in content.items()}
    found = {}
    for item in items:
        key = str(item.get("key", ""))
        if key in content:
            found[safe_path(str(item.get("path", key)))] = File(content[key], _mode(item.get("mode"), mode))
        elif not source.get("optional"):
            raise Missing(f"{kind} {name!r} has no key {key!r}")
    return found


def _item(pod: AgentPod, item: JSON, references: References) -> bytes:
    if (field := item.get("fieldRef")) is not None:
        return field_value(pod, str(field.get("fieldPath", "")), references).encode()
    return resource_value(pod, None, item.get("resourceFieldRef") or {}, references).encode()


def safe_path(path: str) -> str:
    """The path if it is relative and cannot leave its folder; Missing otherwise."""
    parts = path.split("/")
    if not path or path.startswith("/") or any(part in ("", ".", "..") for part in parts) or "\0" in path:
        raise Missing(f"path {path!r} of a volume must be relative and stay inside it")
    return path


def _mode(requested: Any, default: int) -> int:
    return int(requested) & 0o7777 if isinstance(requested, int) else default


def _named(reference: JSON | None) -> set[str]:
    return {str(reference.get("name", ""))} if reference else set()
