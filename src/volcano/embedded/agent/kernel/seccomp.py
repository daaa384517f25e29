"""The system calls that containers may not use: one seccomp filter, set before a container's command runs.

It refuses what programs in containers have no use for and escapes from containers have used: mounts, namespaces,
kernel modules, keys, tracing of the kernel, and input into a terminal of somebody else. Standard library only.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct
from functools import cache

from volcano.embedded.agent.kernel import linux

REFUSED_CALLS = {  # name: number on x86_64, number on aarch64 (-1: the architecture does not have it)
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "open_tree": (428, 428),
    "move_mount": (429, 429), "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432),
    "fspick": (433, 433), "mount_setattr": (442, 442), "unshare": (272, 97), "setns": (308, 268),
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106), "kexec_load": (246, 104),
    "kexec_file_load": (320, 294), "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282), "kcmp": (312, 272),
    "open_by_handle_at": (304, 265), "reboot": (169, 142), "swapon": (167, 224), "swapoff": (168, 225),
    "acct": (163, 89), "quotactl": (179, 60), "quotactl_fd": (443, 443), "settimeofday": (164, 170),
    "clock_settime": (227, 112), "iopl": (172, -1), "ioperm": (173, -1), "syslog": (103, 116),
    "lookup_dcookie": (212, 18), "io_uring_setup": (425, 425), "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
}  # fmt: skip
_CLONE, _CLONE3, _IOCTL = (56, 220), (435, 435), (16, 29)
_TERMINAL_INPUT = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_FIRST_X32_CALL = 0x40000000
_NAMESPACES = linux.POD_NAMESPACES | linux.NEWUSER | linux.NEWNET | linux.NEWCGROUP

_LOAD, _IS_EQUAL, _IS_AT_LEAST, _HAS_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT, _SECOND_ARGUMENT = 0, 4, 16, 24  # offsets in the call's data
_ALLOWED, _FAILS_WITH = 0x7FFF0000, 0x00050000
_PR_SET_SECCOMP, _MODE_FILTER = 22, 2


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def refuse_calls() -> bool:
    """Set the filter for this process and all that it starts; False where the kernel or the architecture lacks it.

    The caller has CAP_SYS_ADMIN in its user namespace, or has given up new privileges.
    """
    program = filter_program(platform.machine())
    if not program:
        return False
    described = _Program(len(program) // 8, program)
    try:
        linux.prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.addressof(described))
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.ENOSYS):
            return False
        raise
    return True


@cache
def filter_program(machine: str) -> bytes:
    """The filter in the kernel's form; empty for an architecture whose numbers are not known here."""
    architecture = _ARCHITECTURES.get(machine)
    if architecture is None:
        return b""
    column = list(_ARCHITECTURES).index(machine)
    refused = [numbers[column] for numbers in REFUSED_CALLS.values() if numbers[column] >= 0]
    lines: list[tuple[int, int, str, str]] = [  # operation, value, where to go if it holds, and if not
        (_LOAD, _ARCHITECTURE, "", ""),
        (_IS_EQUAL, architecture, "", "refuse"),
        (_LOAD, _NUMBER, "", ""),
        (_IS_AT_LEAST, _FIRST_X32_CALL, "refuse", ""),
        *((_IS_EQUAL, number, "refuse", "") for number in refused),
        (_IS_EQUAL, _CLONE3[column], "unknown", ""),  # its flags are out of reach: the C library then uses clone
        (_IS_EQUAL, _CLONE[column], "clone", ""),
        (_IS_EQUAL, _IOCTL[column], "ioctl", "allow"),
    ]
    labels = {"clone": len(lines)}
    lines += [(_LOAD, _FIRST_ARGUMENT, "", ""), (_HAS_BIT, _NAMESPACES, "refuse", "allow")]
    labels["ioctl"] = len(lines)
    lines += [(_LOAD, _SECOND_ARGUMENT, "", ""), *((_IS_EQUAL, each, "refuse", "") for each in _TERMINAL_INPUT)]
    results = {"allow": _ALLOWED, "refuse": _FAILS_WITH | errno.EPERM, "unknown": _FAILS_WITH | errno.ENOSYS}
    for label, result in results.items():
        labels[label] = len(lines)
        lines.append((_RETURN, result, "", ""))

    def distance(label: str, at: int) -> int:
        return labels[label] - at - 1 if label else 0

    return b"".join(
        struct.pack("=HBBI", operation, distance(then, at), distance(otherwise, at), value)
        for at, (operation, value, then, otherwise) in enumerate(lines)
    )
