"""Logins between the pods of a user who is not root: what a container with ssh keys gets so that sshd and ssh work.

Pods share the machine's network then, each with an address of its own, and port 22 is root's: sshd listens on another
port, and the configuration of clients names it. With mounts, our script is mounted over the machine's sshd; without,
the scripts come first on the PATH and the paths in commands are replaced.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Final

import msgspec

import volcano
from volcano.api.kubelet import AgentContainer, VolumeMount
from volcano.embedded.agent.network.pod_connections import KEYS_FOLDER
from volcano.embedded.agent.processes import unprivileged_sshd
from volcano.embedded.agent.processes.unprivileged_sshd import DEFAULT_PORT, SshdSettings, open_port
from volcano.embedded.agent.runtime.container_rights import User
from volcano.embedded.agent.runtime.pod_accounts import write_accounts

KEY_FILE: Final = "id_rsa"
CLIENT_CONFIG: Final = "config"
FILES_AT: Final = "/run/volcano/ssh"
MACHINE_SSHD_AT: Final = "/run/volcano/machine-sshd"
SYSTEM_PROGRAM_FOLDERS: Final = "/usr/sbin:/sbin:/usr/local/sbin:/usr/bin:/bin"
SSHD_RUN_FOLDERS: Final = ("/var/run/sshd", "/run/sshd")
"""sshd as root needs them, so commands make them; only root could on the machine itself."""
MAX_CONFIG_BYTES: Final = 2**20


class SshAccess(msgspec.Struct, frozen=True):
    """The files of one container, and the programs of the machine that they stand for."""

    folder: Path  # sshd, ssh, config
    keys: str  # the folder with the keys, as the container sees it
    sshd: str  # the machine's
    ssh: str
    has_config: bool  # whether the keys come with a configuration of the client
    accounts: tuple[str, ...] = ()  # files of /etc in the folder, in which the container's user has its home


def keys_mount(container: AgentContainer) -> VolumeMount | None:
    """Where the container has ssh keys."""
    return next((each for each in container.volume_mounts if PurePosixPath(each.mount_path).name == KEYS_FOLDER), None)


def write_access(
    folder: Path,
    *,
    keys: str,
    source: Path,
    address: str,
    first_open_port: int,
    hosts: Path | None = None,
    path: str = "",
    user: User | None = None,
    home: str = "/root",
) -> SshAccess | None:
    """Write the files; None where the machine has no sshd or the volume no key.

    `hosts` and `path` are given where nothing can be mounted: the client then looks up names in that file, and sessions
    have that PATH. `user` is given where the agent is root and the container is not: the files are this user's.
    """
    sshd, ssh = (shutil.which(name, path=SYSTEM_PROGRAM_FOLDERS) for name in ("sshd", "ssh"))
    if sshd is None or ssh is None or not (source / KEY_FILE).is_file():
        return None
    folder.mkdir(exist_ok=True)
    seen = Path(FILES_AT) if hosts is None else folder
    _write(folder / "host_key", (source / KEY_FILE).read_bytes())
    settings = SshdSettings(
        program=MACHINE_SSHD_AT if hosts is None else sshd,
        folder=str(seen),
        keys=keys if hosts is None else str(source),
        host_key=str(seen / "host_key"),
        address=address,
        first_open_port=first_open_port,
        path=path,
        is_single_user=hosts is None and user is None,
    )
    _write(folder / "settings.json", json.dumps(settings).encode())
    _write(folder / "sshd", sshd_script(str(seen / "settings.json")).encode(), mode=0o755)
    known = source / CLIENT_CONFIG
    original = known.read_text(errors="replace")[:MAX_CONFIG_BYTES] if known.is_file() else ""
    port = open_port(_port_in(original), first_open_port)
    _write(folder / CLIENT_CONFIG, client_config(original, port, source / KEY_FILE if hosts else None).encode())
    if hosts is not None:
        _write(folder / "ssh", ssh_script(ssh, hosts, folder / CLIENT_CONFIG).encode(), mode=0o755)
    accounts = write_accounts(folder, user, home) if user is not None else ()
    if user is not None:
        for each in (folder, *(folder / name for name in ("host_key", "settings.json", "sshd", CLIENT_CONFIG))):
            os.chown(each, *user)
    return SshAccess(folder, keys, sshd, ssh, has_config=known.is_file(), accounts=accounts)


def sshd_script(settings: str) -> str:
    """A script in place of sshd."""
    module = unprivileged_sshd.__name__
    program = (
        f"import sys; sys.path.insert(0, {str(Path(volcano.__file__).parents[1])!r}); "
        f"from {module} import main; sys.exit(main(sys.argv[1], sys.argv[2:]))"
    )
    return f'#!/bin/sh\nexec {shlex.join([sys.executable, "-I", "-c", program, settings])} "$@"\n'


def ssh_script(ssh: str, hosts: Path, config: Path) -> str:
    """A script in place of ssh: the names of the pod's hosts file are known, which changes while pods come and go."""
    names = r"""awk '!/^#/ && NF > 1 { address = $1; $1 = ""; print "Host" $0 "\n  HostName " address }'"""
    fresh = '"$config.$$"'
    return (
        f"#!/bin/sh\nconfig={shlex.quote(str(config))}\n"
        f'{{ {names} {shlex.quote(str(hosts))}; printf "Host *\\n"; cat "$config"; }} > {fresh}\n'
        f'exec {shlex.quote(ssh)} -F {fresh} "$@"\n'
    )


def client_config(original: str, port: int, key: Path | None) -> str:
    """The configuration of the client. The first value of an option counts, so these lines override the original."""
    identity = f"IdentityFile {key}\n" if key is not None else ""
    return f"Port {port}\n{identity}{original}"


def replaced_paths(
    container: AgentContainer, volumes: Mapping[str, str], parts: Mapping[str, str], access: SshAccess | None
) -> dict[str, str]:
    """Paths of the container → paths of the machine, where nothing can be mounted; `parts`: mount path → subPath."""
    found = {}
    for mount in container.volume_mounts:
        part = parts.get(mount.mount_path, "")
        if mount.name in volumes:
            found[mount.mount_path.rstrip("/")] = "/".join(filter(None, (volumes[mount.name], part)))
    if access is not None:
        found |= {access.sshd: str(access.folder / "sshd"), access.ssh: str(access.folder / "ssh")}
        found |= dict.fromkeys(SSHD_RUN_FOLDERS, str(access.folder))
    return found


def _port_in(config: str) -> int:
    """The port of the plugin's configuration, which is the same for all hosts."""
    words = (line.split() for line in config.splitlines())
    ports = (pair[1] for pair in words if len(pair) == 2 and pair[0].lower() == "port")
    first = next(ports, "")
    return int(first) if first.isdigit() and len(first) <= 5 else DEFAULT_PORT


def _write(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Write the file unless it is as it should be: processes of the container may be reading it."""
    if path.exists() and path.read_bytes() == content:
        return
    path.write_bytes(content)
    path.chmod(mode)
