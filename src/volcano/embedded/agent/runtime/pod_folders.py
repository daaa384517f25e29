"""The folders of pods and containers on this machine, and their logs: makes, finds and removes them.

Also reads the termination message that a container left in its folder. Contents of volumes are in `storage`.
"""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
import stat
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from volcano.api.kubelet import AgentContainer, AgentPod
from volcano.embedded.agent.containers.container_attempt import ContainerAttempt
from volcano.embedded.agent.containers.environment import Missing
from volcano.embedded.agent.containers.image_programs import make_programs
from volcano.embedded.agent.containers.images import CommandLine
from volcano.embedded.agent.containers.process_settings import ProcessSettings
from volcano.embedded.agent.network.pod_connections import first_open_port
from volcano.embedded.agent.runtime.closed_folders import UserView, view_of
from volcano.embedded.agent.runtime.container_rights import User, user_of
from volcano.embedded.agent.runtime.covered_programs import covered_environments, covered_programs
from volcano.embedded.agent.runtime.machine_credentials import MachineCredentials
from volcano.embedded.agent.runtime.orders import (
    ROOT_HOME,
    TERMINATION_LOG,
    ContainerFolders,
    Isolation,
    sub_path_of,
)
from volcano.embedded.agent.runtime.pod_accounts import PodAccounts
from volcano.embedded.agent.runtime.ssh_access import SshAccess, keys_mount, write_access
from volcano.embedded.agent.storage.removal import remove_tree
from volcano.embedded.agent.storage.volume_files import is_made_of_files

MAX_TERMINATION_MESSAGE_BYTES: Final = 4096
"""Of a longer file the end is taken."""


class PodFolders:
    """The folders of one agent's pods. Their names come from API objects, never from requests."""

    def __init__(self, settings: ProcessSettings) -> None:
        self._settings = settings
        self._credentials = MachineCredentials(settings.directory / "ssh_host_key")
        self._accounts = PodAccounts(settings.directory / "accounts", settings.default_user)
        self._log_folders: dict[str, Path] = {}  # by the pod's UID, of pods that were started since this agent was
        self.programs = ""  # which programs busybox-like images have, in words

    def open(self) -> None:
        for folder in (self._settings.directory, self._settings.pods, self._settings.logs):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._settings.memory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.programs = make_programs(self._settings.programs)
        self._credentials.open()

    def make(
        self,
        run: ContainerAttempt,
        container: AgentContainer,
        *,
        line: CommandLine,
        volumes: Mapping[str, str],
        variables: Mapping[str, str],
        isolation: Isolation,
        address: str,
        card_files: tuple[str, ...] = (),
    ) -> ContainerFolders:
        """Make the container's folders. There are few, since each costs more than starting a process."""
        folder = self.pod_folder(run.pod.uid)
        own = self.container_folder(run)
        logs = self.log_file(run).parent
        memory = self._settings.memory / run.pod.uid
        self._log_folders[run.pod.uid] = logs.parent
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
        own_home = _own_home(own, container, isolation) if line.root == "/" else None
        default_user = self._settings.default_user if isolation.has_machine_users else None
        user = _unprivileged(run.pod, container, default_user) if isolation.has_machine_users else None
        groups = _card_groups(card_files) if user is not None else ()
        view = UserView()
        if user is not None:
            home, writable = Path(isolation.home), self._settings.writable
            view = view_of(user, groups, container, line, home=home, writable=writable)
        return ContainerFolders(
            pod=folder,
            container=own,
            logs=logs,
            devices=self._settings.supervisor / "dev",
            shared_memory=memory / "shm",
            hidden=(self._settings.directory, *self._settings.hidden, *self._credentials.hidden()),
            programs={
                **covered_programs(),
                **covered_environments(line, (each.value for each in container.env)),
                **view.programs,
            },
            volumes=volumes,
            made_of_files={volume.name for volume in run.pod.spec.volumes if is_made_of_files(volume)},
            writable=self._settings.writable,
            default_user=default_user,
            user=user,
            closed=view.closed,
            has_own_home=view.has_own_home,
            card_groups=groups,
            accounts=self._accounts.files(isolation.home) if user == default_user and line.root == "/" else {},
            replaced=self._credentials.replaced(),
            image_programs=self._settings.programs if line.has_busybox else None,
            ssh=_ssh_access(folder, own, container, line, volumes, variables, isolation, address, user),
            home=own_home,
            card_files=card_files,
        )

    def pod_folder(self, uid: str) -> Path:
        return self._settings.pods / uid

    def container_folder(self, run: ContainerAttempt) -> Path:
        return self.pod_folder(run.pod.uid) / f"{run.name}.{run.number}"

    def log_file(self, run: ContainerAttempt) -> Path:
        pod = run.pod
        return self._settings.logs / f"{pod.namespace}_{pod.name}_{pod.uid}" / run.name / f"{run.number}.log"

    def termination_message(self, run: ContainerAttempt, *, failed: bool) -> str:
        """What the container wrote as its termination message, or the end of its log if its policy falls back to it."""
        container = run.pod.container(run.name)
        if container is None:
            return ""
        message = _tail(self.container_folder(run) / TERMINATION_LOG)
        if not message and failed and container.termination_message_policy == "FallbackToLogsOnError":
            lines = _tail(self.log_file(run)).splitlines()
            message = "\n".join(line.split(" ", 3)[-1] for line in lines)[-MAX_TERMINATION_MESSAGE_BYTES // 2 :]
        return message

    def remove(self, uid: str) -> None:
        """Remove everything of a pod except its logs."""
        for folder in (self.pod_folder(uid), self._settings.memory / uid):
            with contextlib.suppress(OSError):
                remove_tree(folder)

    def uids(self) -> set[str]:
        """UIDs of the pods that have folders here, those included of which only logs are left."""
        found = {each.name for folder in (self._settings.pods, self._settings.memory) for each in folder.iterdir()}
        return found | {each.name.rpartition("_")[2] for each in self._settings.logs.iterdir()}

    def close(self) -> None:
        """Remove what is in memory; nothing may run any more."""
        shutil.rmtree(self._settings.memory, ignore_errors=True)

    def remove_logs(self, uid: str) -> None:
        known = self._log_folders.pop(uid, None)
        for folder in [known] if known is not None else self._settings.logs.glob(f"*_{glob.escape(uid)}"):
            shutil.rmtree(folder, ignore_errors=True)


def _own_home(own: Path, container: AgentContainer, isolation: Isolation) -> Path | None:
    """A home for root where the machine's cannot be entered and a volume is to be mounted in it."""
    if not isolation.is_single_user or not any(
        f"{mount.mount_path}/".startswith(f"{ROOT_HOME}/") for mount in container.volume_mounts
    ):
        return None
    home = own / "home"
    home.mkdir(mode=0o700, exist_ok=True)
    return home


def _ssh_access(
    pod: Path,
    own: Path,
    container: AgentContainer,
    line: CommandLine,
    volumes: Mapping[str, str],
    variables: Mapping[str, str],
    isolation: Isolation,
    address: str,
    user: User | None,
) -> SshAccess | None:
    """What makes sshd and ssh work where the user is not root."""
    mount = keys_mount(container)
    if mount is None or mount.name not in volumes or line.root != "/" or line.apptainer:
        return None
    if isolation.mounts and not isolation.is_single_user and user is None:
        return None
    source = Path(volumes[mount.name]) / sub_path_of(mount, variables)
    return write_access(
        own / "ssh",
        keys=mount.mount_path.rstrip("/"),
        source=source,
        address=address,
        first_open_port=first_open_port(is_isolated=isolation.users, is_root=user is None and os.geteuid() == 0),
        hosts=None if isolation.mounts else pod / "hosts",
        path="" if isolation.mounts else f"{own / 'ssh'}:{isolation.path}",
        user=user,
        home=str(PurePosixPath(mount.mount_path).parent),  # ssh asks the account, not HOME, for its keys
    )


def _unprivileged(pod: AgentPod, container: AgentContainer, default_user: User | None) -> User | None:
    """The container's user and group, unless it runs as root."""
    uid, gid = user_of(pod, container, default_user)
    return (uid, gid or 0) if uid else None


def _card_groups(files: tuple[str, ...]) -> tuple[int, ...]:
    """The groups that may open these files below /dev, root's aside."""
    found = set()
    for each in files:
        with contextlib.suppress(OSError):
            known = os.stat(f"/dev/{each}")
            found |= {known.st_gid} if known.st_mode & stat.S_IRGRP and known.st_gid else set()
    return tuple(sorted(found))


def _tail(path: Path) -> str:
    """The end of a file that a container may have written, at most MAX_TERMINATION_MESSAGE_BYTES of it."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - MAX_TERMINATION_MESSAGE_BYTES))
            return file.read(MAX_TERMINATION_MESSAGE_BYTES).decode(errors="replace")
    except OSError:
        return ""


def resolver_file() -> bytes:
    """The machine's resolv.conf; where that names a resolver on loopback, which pods cannot reach, its upstream's."""
    for path in (Path("/etc/resolv.conf"), Path("/run/systemd/resolve/resolv.conf")):
        try:
            text = path.read_bytes()[:65536]
        except OSError:
            continue
        if b"nameserver 127." not in text:
            return text
    return b""


def _make_inside(folder: Path, part: str) -> None:
    """Make a subPath that does not exist as a folder; a symbolic link on the way is refused.

    Each step starts from the open folder before it: a pod that replaces one by a link meanwhile gains nothing.
    """
    place = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in part.split("/"):
            try:
                os.mkdir(name, dir_fd=place)
                is_new = True
            except FileExistsError:
                is_new = False
            inner = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place)
            os.close(place)
            place = inner
            if stat.S_ISLNK(os.fstat(place).st_mode):
                raise Missing(f"subPath {part!r} contains a symbolic link")
            if is_new:
                os.chmod(f"/proc/self/fd/{place}", 0o777)
    except NotADirectoryError:
        raise Missing(f"subPath {part!r} contains a file that is not a folder") from None
    finally:
        os.close(place)
