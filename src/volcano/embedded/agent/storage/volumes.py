"""Makes a pod's volumes as folders on this machine: reads their contents from the API and writes them.

Which files a volume has is volume_files' decision; when they are refreshed is pod_files'.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from volcano.api.core import ConfigMap, PersistentVolume, PersistentVolumeClaim, Secret, ServiceAccount
from volcano.api.errors import ApiError, NotFound
from volcano.api.kubelet import AgentPod, AgentVolume
from volcano.api.meta import JSON, Key
from volcano.api.scheme import resource_type
from volcano.embedded.agent.containers.environment import Missing, MissingPath, References, content_of
from volcano.embedded.agent.storage.protected_folders import ProtectedFolders
from volcano.embedded.agent.storage.provisioner import PROVISIONED_BY, PROVISIONER
from volcano.embedded.agent.storage.service_account import ROOT_CERTIFICATE, TOKEN_LIFETIME_SECONDS, wants_token
from volcano.embedded.agent.storage.volume_files import File, files_of, is_made_of_files, needed_by
from volcano.machinery.client import Client

MAX_VOLUME_FILE_BYTES: Final = 4 * 1024 * 1024
Owner = tuple[int, int]
"""The numbers of a user and of its group."""


class PodVolumes:
    """Makes the volumes of all pods of one agent, below one folder."""

    def __init__(
        self,
        client: Client,
        pods: Path,
        memory: Path,
        *,
        protected: ProtectedFolders,
        owner_of: Callable[[AgentPod], Owner | None] = lambda _pod: None,
    ) -> None:
        self._client, self._protected, self._owner_of = client, protected, owner_of
        # Real paths: where containers mount volumes, no symbolic link is followed.
        self._pods, self._memory = Path(os.path.realpath(pods)), Path(os.path.realpath(memory))
        self._root_certificates: dict[Key, dict[str, bytes]] = {}  # cached: every pod mounts it, and it rarely changes

    def clear_cache(self) -> None:
        """Read cached objects from the API again."""
        self._root_certificates.clear()

    async def gives_token(self, pod: AgentPod) -> bool:
        """Whether the pod gets a token; not if its service account does not exist."""
        if not wants_token(pod, account_setting=None):
            return False
        account = Key(pod.namespace, pod.spec.service_account_name or "default")
        try:
            setting = (await self._client.get(ServiceAccount, account)).automount_service_account_token
        except ApiError:
            return False
        return wants_token(pod, account_setting=setting)

    async def references(self, pod: AgentPod, *, address: str, host_address: str) -> References:
        """The objects that the pod's environment and volumes refer to, read now; missing ones are left out."""
        needed = needed_by(pod)
        if not needed.config_maps and not needed.secrets:
            return References(address=address, host_address=host_address)
        config_maps, secrets = await asyncio.gather(
            self._contents(pod.namespace, needed.config_maps, self._config_map),
            self._contents(pod.namespace, needed.secrets, self._secret),
        )
        return References(config_maps, secrets, host_address, address)

    async def make(self, pod: AgentPod, references: References) -> dict[str, str]:
        """Volume name → path on this machine. Missing when one cannot be made yet."""
        if not pod.spec.volumes:
            return {}
        tokens = await self._tokens(pod)
        return {volume.name: await self._make(pod, volume, references, tokens) for volume in pod.spec.volumes}

    async def _make(
        self, pod: AgentPod, volume: AgentVolume, references: References, tokens: Mapping[str, bytes]
    ) -> str:
        folder, owner = self._pods / pod.uid / "volumes" / volume.name, self._owner_of(pod)
        if is_made_of_files(volume):
            if volume.secret is not None or volume.projected is not None:
                folder = self._memory / pod.uid / ".files" / volume.name  # in memory: secrets are never written to disk
            group = pod.spec.security_context.fs_group
            write_files(folder, files_of(pod, volume, references, tokens), group=group, owner=owner)
            return str(folder)
        if volume.empty_dir is not None or volume.ephemeral is not None:
            if (volume.empty_dir or {}).get("medium") == "Memory":
                folder = self._memory / pod.uid / volume.name
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(0o777)
            return str(folder)
        if volume.host_path is not None:
            self._protected.check(str(volume.host_path.get("path", "")))
            return self._protected.real_path(host_folder(volume.host_path, owner=owner))
        if volume.persistent_volume_claim is not None:
            return await self._claimed(pod, str(volume.persistent_volume_claim.get("claimName", "")))
        raise Missing(f"volume {volume.name} is of a kind this node cannot mount")

    async def _claimed(self, pod: AgentPod, name: str) -> str:
        try:
            claim = await self._client.get(PersistentVolumeClaim, Key(pod.namespace, name))
        except NotFound:
            raise Missing(f'persistentvolumeclaim "{name}" not found') from None
        if not claim.spec.volume_name:
            raise Missing(f'persistentvolumeclaim "{name}" is not bound to a volume yet')
        try:
            volume = await self._client.get(PersistentVolume, Key("", claim.spec.volume_name))
        except NotFound:
            raise Missing(f'persistentvolume "{claim.spec.volume_name}" not found') from None
        return volume_folder(volume, self._protected)

    async def _tokens(self, pod: AgentPod) -> dict[str, bytes]:
        """Service account tokens by file path; a token that the server refuses is left out."""
        found = {}
        for needed in needed_by(pod).tokens:
            body: JSON = {
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenRequest",
                "spec": {
                    "audiences": [needed["audience"]] if needed.get("audience") else [],
                    "expirationSeconds": int(needed.get("expirationSeconds") or TOKEN_LIFETIME_SECONDS),
                    "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid},
                },
            }
            account = Key(pod.namespace, pod.spec.service_account_name or "default")
            try:
                answer = await self._client.create_sub(resource_type(ServiceAccount), account, "token", body)
                found[str(needed.get("path", "token"))] = str(msgspec.json.decode(answer)["status"]["token"]).encode()
            except (ApiError, KeyError):
                continue
        return found

    async def _contents(self, namespace: str, names: frozenset[str], read: Any) -> dict[str, dict[str, bytes]]:
        contents = await asyncio.gather(*(read(Key(namespace, name)) for name in sorted(names)))
        return {name: content for name, content in zip(sorted(names), contents, strict=True) if content is not None}

    async def _config_map(self, key: Key) -> dict[str, bytes] | None:
        if key in self._root_certificates:
            return self._root_certificates[key]
        try:
            found = await self._client.get(ConfigMap, key)
        except NotFound:
            return None
        content = content_of(found.data, found.binary_data)
        if key.name == ROOT_CERTIFICATE:
            self._root_certificates[key] = content
        return content

    async def _secret(self, key: Key) -> dict[str, bytes] | None:
        try:
            found = await self._client.get(Secret, key)
        except NotFound:
            return None
        return content_of(None, found.data)


def write_files(
    folder: Path, files: Mapping[str, File], *, group: int | None = None, owner: Owner | None = None
) -> None:
    """Write the files, each replaced atomically so that no reader sees a partial one."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)
    for path, file in files.items():
        if len(file.content) > MAX_VOLUME_FILE_BYTES:
            raise Missing(f"file {path} is larger than {MAX_VOLUME_FILE_BYTES} bytes")
        target = folder / path
        if "/" in path:
            target.parent.mkdir(parents=True, exist_ok=True)
        fresh = target.with_name(f".{target.name}.fresh")
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        try:
            os.write(descriptor, file.content)
            os.fchmod(descriptor, file.mode | (0o040 if group is not None else 0))
            if owner is not None:
                os.fchown(descriptor, *owner)
            if group is not None and os.geteuid() == 0:
                os.fchown(descriptor, -1, group)
        finally:
            os.close(descriptor)
        fresh.rename(target)


def volume_folder(volume: PersistentVolume, protected: ProtectedFolders) -> str:
    """The folder of a persistent volume. A hostPath is made as its type says; a local volume's path must exist."""
    place = volume.spec.host_path or volume.spec.local or {}
    path = Path(str(place.get("path") or ""))
    if not path.name:
        raise Missing(f'persistentvolume "{volume.name}" is not a folder of this machine')
    if not path.is_absolute() or ".." in path.parts:
        raise Missing(f'path "{path}" of persistentvolume "{volume.name}" must be absolute and without ..')
    protected.check(str(path), is_claimed=True)
    if volume.spec.host_path:
        is_own = volume.annotations.get(PROVISIONED_BY) == PROVISIONER
        made = host_folder(volume.spec.host_path, mode=0o777 if is_own else 0o755)
        return protected.real_path(made, is_claimed=True)
    if not path.exists():
        raise MissingPath(
            f'MountVolume.NewMounter initialization failed for volume "{volume.name}" : path "{path}" does not exist'
        )
    return protected.real_path(str(path), is_claimed=True)


def host_folder(source: JSON, *, mode: int = 0o755, owner: Owner | None = None) -> str:
    """The hostPath, created where its type includes OrCreate; Missing when it does not match its type.

    What is created for a pod belongs to its user: as root's, the pod could not write to it.
    """
    path, kind = Path(str(source.get("path", ""))), str(source.get("type") or "")
    if not path.is_absolute() or ".." in path.parts:
        raise Missing(f"hostPath {str(path)!r} must be absolute and without ..")
    match kind:
        case "DirectoryOrCreate" if not path.exists():
            path.mkdir(parents=True, exist_ok=True)
            path.chmod(mode)
        case "FileOrCreate" if not path.exists():
            path.touch(0o644)
        case "Directory" if not path.is_dir():
            raise Missing(f"hostPath type check failed: {path} is not a directory")
        case "File" if not path.is_file():
            raise Missing(f"hostPath type check failed: {path} is not a file")
        case "" if not path.exists():
            path.mkdir(parents=True, exist_ok=True)
        case _:
            return str(path)
    if owner is not None:
        os.chown(path, *owner, follow_symlinks=False)
    return str(path)
