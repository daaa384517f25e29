"""Where things of pods are on this machine: folders of containers, logs, last words; made and removed here."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Set
from functools import cache
from pathlib import Path
from typing import Final

import volcano
from volcano.api.kubelet import AgentContainer, AgentPod
from volcano.embedded.agent.containers.environment import Missing
from volcano.embedded.agent.containers.process_settings import ProcessSettings
from volcano.embedded.agent.runtime.orders import TEMPORARY_FOLDERS, TERMINATION_LOG, ContainerFolders, sub_path_of

MAX_TERMINATION_MESSAGE_BYTES: Final = 4096
"""Of a termination message; a longer file's end counts."""


class PodFolders:
    """The folders of one agent's pods. Names come from objects, never from requests."""

    def __init__(self, settings: ProcessSettings) -> None:
        self._settings = settings

    def open(self) -> None:
        for folder in (self._settings.directory, self._settings.pods, self._settings.logs):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._settings.memory.mkdir(mode=0o700, parents=True, exist_ok=True)
        (self._settings.directory / "resolv.conf").write_bytes(resolver_file())

    def make(
        self,
        pod: AgentPod,
        container: AgentContainer,
        attempt: int,
        *,
        volumes: Mapping[str, str],
        variables: Mapping[str, str],
    ) -> ContainerFolders:
        """The container's folders, made. Few of them: each costs more than starting a process."""
        folder = self._settings.pods / pod.uid
        own = self.container_folder(pod, container.name, attempt)
        logs = self.log_file(pod, container.name, attempt).parent
        memory = self._settings.memory / pod.uid
        for each in (folder, own, logs.parent, logs, memory):
            each.mkdir(exist_ok=True)
        for each in (own / "tmp", memory / "shm"):
            each.mkdir(exist_ok=True)
            each.chmod(0o1777)
        (own / TERMINATION_LOG).touch(0o666)
        (own / TERMINATION_LOG).chmod(0o666)
        for mount in container.volume_mounts:
            part = sub_path_of(mount, variables)
            if part and mount.name in volumes:
                _make_inside(Path(volumes[mount.name]), part)
        return ContainerFolders(
            pod=folder,
            container=own,
            logs=logs,
            devices=self._settings.supervisor / "dev",
            shared_memory=memory / "shm",
            resolver=self._settings.directory / "resolv.conf",
            hidden=(self._settings.directory, *self._settings.hidden),
            programs=covered_programs(),
            volumes=volumes,
        )

    def container_folder(self, pod: AgentPod, container: str, attempt: int) -> Path:
        return self._settings.pods / pod.uid / f"{container}.{attempt}"

    def log_file(self, pod: AgentPod, container: str, attempt: int) -> Path:
        return self._settings.logs / f"{pod.namespace}_{pod.name}_{pod.uid}" / container / f"{attempt}.log"

    def last_words(self, pod: AgentPod, name: str, attempt: int, *, failed: bool) -> str:
        """The termination message: what the container wrote for it, or the end of its log if it failed silently."""
        container = pod.container(name)
        if container is None:
            return ""
        message = _tail(self.container_folder(pod, name, attempt) / TERMINATION_LOG)
        if not message and failed and container.termination_message_policy == "FallbackToLogsOnError":
            lines = _tail(self.log_file(pod, name, attempt)).splitlines()
            message = "\n".join(line.split(" ", 3)[-1] for line in lines)[-MAX_TERMINATION_MESSAGE_BYTES // 2 :]
        return message

    def remove(self, uid: str) -> None:
        """All but the logs."""
        shutil.rmtree(self._settings.pods / uid, ignore_errors=True)
        shutil.rmtree(self._settings.memory / uid, ignore_errors=True)

    def unknown_pods(self, uids: Set[str]) -> set[str]:
        """Pods that something is kept of, other than these."""
        found = {each.name for folder in (self._settings.pods, self._settings.memory) for each in folder.iterdir()}
        return found - uids

    def close(self) -> None:
        """Nothing runs: what is in memory goes."""
        shutil.rmtree(self._settings.memory, ignore_errors=True)

    def remove_logs(self, uid: str) -> None:
        for folder in self._settings.logs.glob(f"*_{uid}"):
            shutil.rmtree(folder, ignore_errors=True)


def _tail(path: Path) -> str:
    """The end of a file that a container may have written; never more than a message."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - MAX_TERMINATION_MESSAGE_BYTES))
            return file.read(MAX_TERMINATION_MESSAGE_BYTES).decode(errors="replace")
    except OSError:
        return ""


def resolver_file() -> bytes:
    """The machine's; where that names only a resolver on loopback, which pods cannot reach, what it asks in turn."""
    for path in (Path("/etc/resolv.conf"), Path("/run/systemd/resolve/resolv.conf")):
        try:
            text = path.read_bytes()[:65536]
        except OSError:
            continue
        if b"nameserver 127." not in text:
            return text
    return b""


def _make_inside(folder: Path, part: str) -> None:
    """A subPath that does not exist yet is a folder; links on the way are not followed out of the volume."""
    path = folder
    for name in part.split("/"):
        path = path / name
        if path.is_symlink():
            raise Missing(f"subPath {part!r} goes through a link")
        if not path.exists():
            path.mkdir()
            path.chmod(0o777)


@cache
def covered_programs() -> tuple[Path, ...]:
    """This interpreter's folder and our own package, where they lie in a folder that every container has for itself."""
    folders = {Path(sys.prefix), Path(volcano.__file__).parents[1]}
    covered = [each for each in sorted(folders) if any(each.is_relative_to(t) for t in (*TEMPORARY_FOLDERS, "/run"))]
    return tuple(each for each in covered if not any(each != other and each.is_relative_to(other) for other in covered))
