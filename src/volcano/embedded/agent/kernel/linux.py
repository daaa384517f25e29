"""Linux calls that Python 3.11 does not offer: namespaces, mounts, capabilities. Standard library only.

Each raises OSError with the call's name. Used in the supervisor and in the processes it forks.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
from collections.abc import Collection

NEWNS = 0x00020000
NEWCGROUP = 0x02000000
NEWUTS = 0x04000000
NEWIPC = 0x08000000
NEWUSER = 0x10000000
NEWPID = 0x20000000
NEWNET = 0x40000000
POD_NAMESPACES = NEWNS | NEWPID | NEWUTS | NEWIPC
"""What every pod has of its own where the machine allows it."""

MS_RDONLY = 1
MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_REMOUNT = 32
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18
MS_SLAVE = 1 << 19
MNT_DETACH = 2

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4

CONTAINER_CAPABILITIES = frozenset((0, 1, 3, 4, 5, 6, 7, 8, 10, 13, 18, 29, 31))
"""chown, dac_override, fowner, fsetid, kill, setgid, setuid, setpcap, net_bind_service, net_raw, sys_chroot,
audit_write, setfcap: the usual set of containers, without mknod, which would give access to the machine's disks."""
CAPABILITIES = (
    "CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP",
    "LINUX_IMMUTABLE", "NET_BIND_SERVICE", "NET_BROADCAST", "NET_ADMIN", "NET_RAW", "IPC_LOCK", "IPC_OWNER",
    "SYS_MODULE", "SYS_RAWIO", "SYS_CHROOT", "SYS_PTRACE", "SYS_PACCT", "SYS_ADMIN", "SYS_BOOT", "SYS_NICE",
    "SYS_RESOURCE", "SYS_TIME", "SYS_TTY_CONFIG", "MKNOD", "LEASE", "AUDIT_WRITE", "AUDIT_CONTROL", "SETFCAP",
    "MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG", "WAKE_ALARM", "BLOCK_SUSPEND", "AUDIT_READ", "PERFMON", "BPF",
    "CHECKPOINT_RESTORE",
)  # fmt: skip
"""Their names by number, as securityContext.capabilities has them."""

LAST_CAPABILITY = 63

_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442  # the same numbers on every architecture
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41, "armv7l": 218, "ppc64le": 203, "s390x": 217, "riscv64": 41}
_CLONE = {"x86_64": 56, "aarch64": 220, "armv7l": 120, "ppc64le": 120, "riscv64": 220}
_AT_FDCWD = -100
_AT_EMPTY_PATH = 0x1000
_AT_RECURSIVE = 0x8000
_OPEN_TREE_CLONE = 1
_MOVE_MOUNT_F_EMPTY_PATH = 4
_ATTR_RDONLY = 1
_ATTR_NODEV = 4

_libc = ctypes.CDLL(None, use_errno=True)
_locked = ctypes.PyDLL(None, use_errno=True)


def _check(answer: int, what: str) -> None:
    if answer < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    _check(_libc.unshare(flags), "unshare")


def setns(descriptor: int, kind: int) -> None:
    _check(_libc.setns(descriptor, kind), "setns")


def fork_into(flags: int) -> int:
    """Fork, with the child in namespaces of its own. Only for processes with a single thread."""
    number = _CLONE.get(platform.machine())
    if number is None:
        raise OSError(38, "clone: not known on this architecture")
    zero = ctypes.c_ulong(0)
    # PyDLL keeps the interpreter's lock, so that the child holds it too.
    pid = int(_locked.syscall(number, ctypes.c_ulong(flags | signal.SIGCHLD), zero, zero, zero, zero))
    _check(pid, "clone")
    return pid


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    answer = _libc.mount(
        source.encode(), target.encode(), kind.encode() or None, ctypes.c_ulong(flags), options.encode() or None
    )
    _check(answer, f"mount {kind or source} at {target}")


def unmount(target: str, flags: int = MNT_DETACH) -> None:
    _check(_libc.umount2(target.encode(), flags), f"umount {target}")


def make_read_only(target: str) -> None:
    """Make a mount and everything mounted below it read-only."""
    attributes = (ctypes.c_uint64 * 4)(_ATTR_RDONLY, 0, 0, 0)
    answer = _libc.syscall(_MOUNT_SETATTR, _AT_FDCWD, target.encode(), _AT_RECURSIVE, ctypes.byref(attributes), 32)
    if answer < 0:  # a kernel before 5.12: only the topmost mount can be changed
        mount("none", target, "", MS_BIND | MS_REMOUNT | MS_RDONLY)


def make_top_read_only(target: str) -> None:
    """Make a mount read-only, but not those below it."""
    attributes = (ctypes.c_uint64 * 4)(_ATTR_RDONLY, 0, 0, 0)
    answer = _libc.syscall(_MOUNT_SETATTR, _AT_FDCWD, target.encode(), 0, ctypes.byref(attributes), 32)
    if answer < 0:
        mount("none", target, "", MS_BIND | MS_REMOUNT | MS_RDONLY)


def forbid_devices(target: str) -> None:
    """Device files of a mount, and of everything mounted below it, cannot be opened."""
    attributes = (ctypes.c_uint64 * 4)(_ATTR_NODEV, 0, 0, 0)
    answer = _libc.syscall(_MOUNT_SETATTR, _AT_FDCWD, target.encode(), _AT_RECURSIVE, ctypes.byref(attributes), 32)
    if answer < 0:
        mount("none", target, "", MS_BIND | MS_REMOUNT | MS_NODEV)


def detached(descriptor: int) -> int:
    """A copy of what is mounted at an open path and below it, attached nowhere; it keeps what may be written now."""
    flags = _OPEN_TREE_CLONE | _AT_EMPTY_PATH | _AT_RECURSIVE | os.O_CLOEXEC
    tree = int(_libc.syscall(_OPEN_TREE, descriptor, b"", ctypes.c_uint(flags)))
    _check(tree, "open_tree")
    return tree


def attach(tree: int, target: str) -> None:
    """Mount a detached copy."""
    answer = _libc.syscall(_MOVE_MOUNT, tree, b"", _AT_FDCWD, target.encode(), _MOVE_MOUNT_F_EMPTY_PATH)
    _check(answer, f"move_mount to {target}")


def can_detach() -> bool:
    """Whether the kernel (5.12 or later) can detach mounts and make a whole tree of them read-only."""
    attributes = (ctypes.c_uint64 * 4)(0, 0, 0, 0)
    return int(_libc.syscall(_MOUNT_SETATTR, _AT_FDCWD, b"/", 0, ctypes.byref(attributes), 32)) == 0


def pivot_root(root: str) -> None:
    """Make the mount point `root` the root directory and unmount the old one."""
    number = _PIVOT_ROOT.get(platform.machine())
    os.chdir(root)
    if number is None:
        os.chroot(".")
        return
    _check(_libc.syscall(number, b".", b"."), "pivot_root")
    unmount(".")
    os.chdir("/")


def prctl(option: int, argument: int = 0, second: int = 0) -> None:
    _check(_libc.prctl(option, ctypes.c_ulong(argument), ctypes.c_ulong(second), 0, 0), "prctl")


def drop_capabilities(keep: Collection[int] = CONTAINER_CAPABILITIES) -> None:
    """Reduce the bounding set to these: programs started from here on can never have others."""
    for capability in range(LAST_CAPABILITY + 1):
        if capability not in keep and _libc.prctl(PR_CAPBSET_DROP, ctypes.c_ulong(capability), 0, 0, 0) < 0:
            break  # past the last one of this kernel, or not permitted
    try:
        prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    except OSError:
        pass


def sethostname(name: str) -> None:
    encoded = name.encode()
    _check(_libc.sethostname(encoded, len(encoded)), "sethostname")


def isolation_tier() -> str:
    """Which namespaces this process can make: `root` (all), `user` (in a user namespace) or `none`."""
    if is_available(POD_NAMESPACES):
        return "root"
    return "user" if is_available(NEWUSER | POD_NAMESPACES) else "none"


def is_available(flags: int) -> bool:
    """Whether this process may make these namespaces; tried in a child process."""
    child = os.fork()
    if child == 0:
        try:
            unshare(flags)
            os._exit(0)
        except OSError:
            os._exit(1)
    return os.waitpid(child, 0)[1] == 0
