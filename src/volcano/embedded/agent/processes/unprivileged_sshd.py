"""Starts the machine's sshd in a pod of a user who is not root. Standard library only; sshd replaces this process.

Started instead of sshd by the script that `ssh_access` writes, with the settings of the pod in a file. sshd listens at
the pod's own address, on a port that any user may open, and accepts the keys that the pod was given.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Final, NamedTuple, TypedDict

from volcano.embedded.agent.kernel import linux

PORT_SHIFT: Final = 2200
"""Added to a port that only root may open: 22 becomes 2222, for servers and clients alike."""
DEFAULT_PORT: Final = 22
OPTIONS_WITH_VALUE: Final = "CcEfghkopu"
CONTAINER_ROOT: Final = "root"


class SshdSettings(TypedDict):
    """What the script of a container says about it."""

    program: str  # the machine's sshd
    folder: str  # where files of this container may be written
    keys: str  # the folder with authorized_keys
    host_key: str
    address: str
    first_open_port: int
    path: str  # of the sessions; empty: sshd's own
    is_single_user: bool  # in a user namespace in which only one user exists, as root


class SshdRequest(NamedTuple):
    """What the arguments of a sshd ask for."""

    port: int
    config: str
    rest: list[str]


def open_port(port: int, first: int) -> int:
    """The port that is used instead of one that only root may open."""
    return port if port >= first else port + PORT_SHIFT


def read_arguments(arguments: list[str]) -> SshdRequest:
    """The port and the file that the arguments name, and the other arguments."""
    port, config, rest = DEFAULT_PORT, "", []
    waiting = list(arguments)
    while waiting:
        word = waiting.pop(0)
        letter = word[1:2] if word.startswith("-") else ""
        if not letter or letter not in OPTIONS_WITH_VALUE:
            rest.append(word)
            continue
        value = word[2:] or (waiting.pop(0) if waiting else "")
        name, _, setting = value.replace("=", " ").partition(" ")
        if letter == "f":
            config = value
        elif letter == "p" and value.isdigit():
            port = int(value)
        elif letter == "o" and name.lower() == "port" and setting.strip().isdigit():
            port = int(setting)
        else:
            rest += [f"-{letter}", value]
    return SshdRequest(port, config, rest)


def server_config(settings: SshdSettings, asked: SshdRequest) -> str:
    """The configuration of sshd; where it names an option twice, the first counts."""
    lines = [
        f"Port {open_port(asked.port, settings['first_open_port'])}",
        f"ListenAddress {settings['address']}",
        f"HostKey {settings['host_key']}",
        f"AuthorizedKeysFile {settings['keys']}/authorized_keys",
        "PidFile none",
        "UsePAM no",
        "StrictModes no",
        "PasswordAuthentication no",
        *([f"SetEnv PATH={settings['path']}"] if settings["path"] else []),
        *([f"Include {asked.config}"] if asked.config and os.access(asked.config, os.R_OK) else []),
    ]
    return "".join(f"{line}\n" for line in lines)


def enter_own_user(folder: str, *, user: int, group: int) -> None:
    """Continue as a user that is not root: sshd as root would change to users that do not exist in this namespace.

    The accounts of this process and of sessions are replaced: root has the number of this user, so that `ssh host` from
    another pod, which logs in as root, finds its account.
    """
    root, root_group = os.geteuid(), os.getegid()
    linux.unshare(linux.NEWUSER | linux.NEWNS)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {root} 1"), ("gid_map", f"{group} {root_group} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    linux.mount("none", "/", "", linux.MS_REC | linux.MS_PRIVATE)
    accounts = {
        "passwd": f"{CONTAINER_ROOT}:x:{user}:{group}:{CONTAINER_ROOT}:/root:/bin/sh\n",
        "group": f"{CONTAINER_ROOT}:x:{group}:\n",
        "shadow": f"{CONTAINER_ROOT}:*:1:0:99999:7:::\n",
    }
    for name, text in accounts.items():
        with open(f"{folder}/{name}", "w") as file:
            file.write(text)
        if os.path.exists(f"/etc/{name}"):
            linux.mount(f"{folder}/{name}", f"/etc/{name}", "", linux.MS_BIND)


def _outer_number(path: str) -> int:
    """The number that the only user or group of this namespace has outside it."""
    with open(path) as file:
        return int(file.read().split()[1])


def main(settings_file: str, arguments: list[str]) -> int:
    with open(settings_file) as file:
        settings: SshdSettings = json.load(file)
    config = f"{settings['folder']}/sshd_config.{os.getpid()}"
    with open(config, "w") as file:
        file.write(server_config(settings, asked := read_arguments(arguments)))
    try:
        if settings["is_single_user"] and os.geteuid() == 0:
            user, group = _outer_number("/proc/self/uid_map"), _outer_number("/proc/self/gid_map")
            enter_own_user(settings["folder"], user=user, group=group)
        os.execv(settings["program"], [settings["program"], "-f", config, *asked.rest])
    except OSError as error:
        print(f"sshd cannot run as a user other than root here: {error}; user namespaces are needed", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
