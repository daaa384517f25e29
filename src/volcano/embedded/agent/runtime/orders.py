"""The order that makes the supervisor start a container: command, variables, mounts, user and limits. Pure.

Folders, volumes and namespaces exist already; pod_folders and pod_sandboxes made them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from pathlib import Path, PurePosixPath
from typing import Final

import msgspec

from volcano.api.kubelet import AgentContainer, AgentPod, VolumeMount
from volcano.embedded.agent.containers.container_attempt import ContainerAttempt
from volcano.embedded.agent.containers.environment import Missing, References, environment_of, expand
from volcano.embedded.agent.containers.image_programs import MOUNTED_AT
from volcano.embedded.agent.containers.images import CommandLine
from volcano.embedded.agent.processes.supervisor_protocol import WITHOUT_DEVICES, WITHOUT_LINKS, Mount, Order
from volcano.embedded.agent.runtime.container_rights import ContainerRights, User, rights_of
from volcano.embedded.agent.runtime.open_files import MAX_OPEN_FILES
from volcano.embedded.agent.runtime.ssh_access import (
    CLIENT_CONFIG,
    FILES_AT,
    MACHINE_SSHD_AT,
    SshAccess,
    replaced_paths,
)
from volcano.embedded.agent.storage.volume_files import safe_path

KERNEL_FOLDERS: Final = (("proc",), ("sys",))
TERMINATION_LOG: Final = "termination"
RESOLVER: Final = "resolv.conf"
TEMPORARY_FOLDERS: Final = ("/tmp", "/var/tmp")
"""Each container has its own copy of these, and of /run, as it would with an image."""
UNLIMITED: Final = -1
ROOT_HOME: Final = "/root"
HOME_SIZE: Final = "1g"
"""What a container can write into a home of its own, in memory."""


class ContainerFolders(msgspec.Struct, frozen=True):
    """The folders and files of one container on this machine."""

    pod: Path  # the pod's folder
    container: Path  # the container's folder, for this attempt
    logs: Path
    devices: Path
    shared_memory: Path
    hidden: tuple[Path, ...]
    programs: Mapping[Path, Path]  # path → real path of the interpreter and others where a folder would cover them
    volumes: Mapping[str, str]
    made_of_files: Set[str] = frozenset()  # names of the volumes whose files the agent writes
    writable: tuple[Path, ...] = ()  # folders of the machine in which every pod may write
    default_user: User | None = None  # where the pod states none
    user: User | None = None  # the container's, where that is not root, and the machine's files are root's
    closed: tuple[Path, ...] = ()  # folders that this user may not enter: it sees folders of the container's own
    has_own_home: bool = False  # one of them is its home
    card_groups: tuple[int, ...] = ()  # groups that may open the files of the cards
    accounts: Mapping[Path, Path] = msgspec.field(default_factory=dict)  # files of the machine → those with this user
    replaced: Mapping[Path, Path] = msgspec.field(default_factory=dict)  # files of the machine and what pods see there
    image_programs: Path | None = None  # what a busybox-like image brings
    ssh: SshAccess | None = None  # where the user is not root, and the container has keys
    home: Path | None = None  # what the container sees as root's home, where the machine's cannot be entered
    card_files: tuple[str, ...] = ()  # the files of cards below /dev that the container may open


class Isolation(msgspec.Struct, frozen=True):
    """Which namespaces of its own a container gets."""

    mounts: bool = True
    processes: bool = True
    users: bool = False
    is_single_user: bool = False  # within a user namespace in which only the user of this agent exists, as root
    home: str = "/root"
    has_machine_users: bool = False  # every user of the machine exists, and the agent may become each
    path: str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def order_for(
    run: ContainerAttempt,
    container: AgentContainer,
    *,
    line: CommandLine,
    references: References,
    folders: ContainerFolders,
    isolation: Isolation,
    variables: Mapping[str, str],
    granted: Mapping[str, str] | None = None,
    cgroups: tuple[str, ...] = (),
    cpus: tuple[int, ...] = (),
) -> Order:
    """The order; Missing when the container refers to something that does not exist.

    `granted` are variables that name what the container was granted: its own spec does not replace them.
    """
    pod = run.pod
    if isolation.is_single_user:
        _check_processes_of_others(pod, folders)
    known = {**variables, **environment_of(pod, container, references), **(granted or {})}
    paths = {} if isolation.mounts else _machine_paths(container, known, folders)
    rights = rights_of(pod, container, folders.default_user)
    # Apptainer, and sshd in a user namespace, make namespaces and mounts themselves.
    needs_namespaces = bool(line.apptainer) or (folders.ssh is not None and isolation.is_single_user)
    filters = rights.refuses_calls and not needs_namespaces
    cwd = "/" if line.apptainer else with_paths(container.working_dir or line.working_dir or "/", paths)
    return {
        "container": run.id,
        "pod": pod.uid,
        "argv": [with_paths(expand(word, known), paths) for word in line.argv],
        "environment": {
            "PATH": _path(line, folders, isolation),
            "HOME": ROOT_HOME if folders.home is not None else isolation.home,
            "HOSTNAME": pod.hostname,
            **line.env,
            **({"TERM": "xterm"} if container.tty else {}),
            **{name: with_paths(value, paths) for name, value in known.items()},
        },
        "cwd": cwd,
        "hostname": pod.hostname if not pod.spec.host_network else "",
        "root": line.root,
        "scratch": str(folders.container),
        "mounts": [
            *_layers(rights, line, isolation, cwd, folders),
            *mounts_of(pod, container, known, folders, isolation),
        ]
        if isolation.mounts
        else [],
        "isolated": isolation.mounts,
        "read_only": rights.read_only_root,
        "own_processes": isolation.processes and not pod.spec.host_pid,
        "own_user": isolation.users and not pod.spec.host_network and not rights.privileged,
        "limits": _limits(folders),
        "cgroups": list(cgroups),
        "cpus": list(cpus),
        "uid": rights.uid,
        "gid": rights.gid,
        "groups": [*rights.groups, *folders.card_groups] if rights.groups is not None else None,
        "privileged": rights.privileged,
        "capabilities": rights.capabilities,
        # Without namespaces a filter can be set only by giving up the rights of set-uid programs.
        "no_new_privileges": rights.no_new_privileges or (filters and not isolation.mounts),
        "refuses_calls": filters,
        "log_directory": str(folders.logs),
        "log_name": f"{run.number}.log",
        "terminal": container.tty,
        "stdin": container.stdin,
        "stdin_once": container.stdin_once,
    }


def _check_processes_of_others(pod: AgentPod, folders: ContainerFolders) -> None:
    """Where all pods are one user, the machine's /proc opens files, memory and environments of all of them."""
    shown = [name for name, folder in folders.volumes.items() if PurePosixPath(folder).parts[1:2] == ("proc",)]
    what = "hostPID" if pod.spec.host_pid else f"volume {shown[0]!r}" if shown else ""
    if what:
        raise Missing(f"{what} is refused on this node: its pods run as one user, and would see into all its processes")


def _limits(folders: ContainerFolders) -> dict[str, list[int]]:
    """The kernel counts processes by user, root's aside: pods with one user would share its number."""
    processes = {"nproc": [UNLIMITED, UNLIMITED]} if folders.user is not None else {}
    return {"nofile": [MAX_OPEN_FILES, MAX_OPEN_FILES], "core": [0, UNLIMITED], **processes}


def mounts_of(
    pod: AgentPod,
    container: AgentContainer,
    variables: Mapping[str, str],
    folders: ContainerFolders,
    isolation: Isolation,
) -> list[Mount]:
    """System folders, then the pod's host files, then its volumes, parents before what is inside them."""
    mounts = [
        _devices(folders),
        _made("devpts", "/dev/pts"),
        bind(folders.shared_memory, "/dev/shm"),
        *(bind(folders.container / "tmp", target) for target in TEMPORARY_FOLDERS),
        _made("tmpfs", "/run", f"mode={'1777' if folders.user is not None else '0755'},size=64m"),
        *_own_folders(container, folders, isolation),
        *(bind(path, str(path)) for path in folders.writable),
        *(_without_links(bind(real, str(path), read_only=True)) for path, real in folders.programs.items()),
        *([bind(folders.image_programs, MOUNTED_AT, read_only=True)] if folders.image_programs is not None else ()),
        *(bind(source, str(target), read_only=True) for target, source in folders.replaced.items()),
        *(bind(source, str(target), read_only=True) for target, source in folders.accounts.items()),
        *(_made("hide", str(path)) for path in folders.hidden),
        bind(folders.pod / "hosts", "/etc/hosts"),
        bind(folders.pod / "hostname", "/etc/hostname"),
        bind(folders.pod / RESOLVER, "/etc/resolv.conf", read_only=True),
    ]
    if container.termination_message_path:
        mounts.append(bind(folders.container / TERMINATION_LOG, container.termination_message_path))
    if folders.home is not None:
        mounts.append(bind(folders.home, ROOT_HOME))
    volumes = sorted(container.volume_mounts, key=lambda each: PurePosixPath(each.mount_path).parts)
    is_privileged = container.security_context.privileged
    mounts += [_volume_mount(each, variables, folders, is_privileged=is_privileged) for each in volumes]
    return mounts + (_ssh_mounts(folders.ssh) if folders.ssh is not None else [])


def _own_folders(container: AgentContainer, folders: ContainerFolders, isolation: Isolation) -> list[Mount]:
    """Folders in place of those that the container's user may not enter; it can write to its home alone."""
    made = []
    for folder in folders.closed:
        is_home = folders.has_own_home and str(folder) == isolation.home
        is_writable = is_home and not container.security_context.read_only_root_filesystem
        owner = f",uid={folders.user[0]},gid={folders.user[1]}" if folders.user is not None and is_writable else ""
        made.append(_made("tmpfs", str(folder), f"mode=0755,size={HOME_SIZE if is_writable else '1m'}{owner}"))
    return made


def _ssh_mounts(access: SshAccess) -> list[Mount]:
    mounts = [
        bind(Path(access.sshd), MACHINE_SSHD_AT, read_only=True),
        bind(access.folder, FILES_AT),
        bind(access.folder / "sshd", access.sshd, read_only=True),
        *(bind(access.folder / name, f"/etc/{name}", read_only=True) for name in access.accounts),
    ]
    if access.has_config:
        mounts.append(bind(access.folder / CLIENT_CONFIG, f"{access.keys}/{CLIENT_CONFIG}", read_only=True))
    return mounts


def bind(source: Path, target: str, *, part: str = "", read_only: bool = False) -> Mount:
    return Mount(kind="bind", source=str(source), part=part, target=target, options="", read_only=read_only)


def _without_links(mount: Mount) -> Mount:
    mount["options"] = WITHOUT_LINKS
    return mount


def _devices(folders: ContainerFolders) -> Mount:
    """The /dev that all containers share, or one with the cards of this container."""
    if not folders.card_files:
        return bind(folders.devices, "/dev", read_only=True)
    source, files = str(folders.container / "dev"), ",".join(folders.card_files)
    return Mount(kind="devices", source=source, part="", target="/dev", options=files, read_only=True)


def _made(kind: str, target: str, options: str = "") -> Mount:
    return Mount(kind=kind, source="", part="", target=target, options=options, read_only=False)


def _layers(
    rights: ContainerRights, line: CommandLine, isolation: Isolation, cwd: str, folders: ContainerFolders
) -> list[Mount]:
    """The machine's files are read-only, but home and working folder are the container's own, as in an image."""
    if line.root != "/" or line.apptainer or rights.read_only_root:
        return []
    wanted = [each for each in dict.fromkeys((isolation.home, cwd)) if each != "/"]
    shown = [each for each in wanted if not any(Path(each).is_relative_to(closed) for closed in folders.closed)]
    owner = f"{folders.user[0]}:{folders.user[1]}" if folders.user is not None else ""
    return [_made("layer", each, owner) for each in shown]


def sub_path_of(mount: VolumeMount, variables: Mapping[str, str]) -> str:
    """The part of a volume that is mounted: a relative path that cannot leave the volume."""
    part = expand(mount.sub_path_expr, variables) if mount.sub_path_expr else mount.sub_path
    return safe_path(part.strip("/")) if part.strip("/") else ""


def _volume_mount(
    mount: VolumeMount, variables: Mapping[str, str], folders: ContainerFolders, *, is_privileged: bool
) -> Mount:
    folder = folders.volumes.get(mount.name)
    if folder is None:
        raise Missing(f"volumeMount {mount.name!r} names a volume the pod does not have")
    if not mount.mount_path.startswith("/") or ":" in mount.mount_path:
        raise Missing(f"mountPath {mount.mount_path!r} must be absolute and without a colon")
    # Files that the agent refreshes are read-only, as a kubelet mounts them: it would follow links put in their place.
    read_only = mount.read_only or mount.name in folders.made_of_files
    # Who writes to settings of the kernel or to control groups runs programs as root, or stops those of others.
    read_only = read_only or (PurePosixPath(folder).parts[1:2] in KERNEL_FOLDERS and not is_privileged)
    part = sub_path_of(mount, variables)
    made = bind(Path(folder), str(PurePosixPath(mount.mount_path)), part=part, read_only=read_only)
    made["options"] = ",".join((WITHOUT_LINKS, *(() if is_privileged else (WITHOUT_DEVICES,))))
    return made


def _machine_paths(
    container: AgentContainer, variables: Mapping[str, str], folders: ContainerFolders
) -> dict[str, str]:
    """Where nothing can be mounted: the paths that the container's command and variables are given instead."""
    parts = {mount.mount_path: sub_path_of(mount, variables) for mount in container.volume_mounts}
    return replaced_paths(container, folders.volumes, parts, folders.ssh)


def with_paths(text: str, paths: Mapping[str, str]) -> str:
    """The text with each of these paths, and those below them, replaced."""
    if not paths:
        return text
    known = "|".join(re.escape(path) for path in sorted(paths, key=len, reverse=True))
    return re.sub(rf"(?<![\w./-])(?:{known})(?![\w.-])", lambda found: paths[found[0]], text)


def _path(line: CommandLine, folders: ContainerFolders, isolation: Isolation) -> str:
    """The image's virtual environment, then the machine's programs, then what a busybox-like image brings."""
    parts = [str(folders.ssh.folder)] if folders.ssh is not None and not isolation.mounts else []
    parts += [f"{line.venv}/bin"] if line.venv else []
    parts.append(isolation.path)
    if folders.image_programs is not None:
        parts.append(MOUNTED_AT if isolation.mounts else str(folders.image_programs))
    return ":".join(parts)
