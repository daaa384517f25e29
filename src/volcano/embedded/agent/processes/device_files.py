"""Makes the /dev of containers: harmless devices, and of this machine's accelerators those that a container may open.

Standard library only: the supervisor imports it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from volcano.embedded.agent.kernel import linux

DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
LINKS = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
    "ptmx": "pts/ptmx",
    "core": "/proc/kcore",
}
EXTRA_DEVICES = ("fuse", "kfd", "infiniband", "davinci_manager", "devmm_svm", "hisi_hdc")
"""Of all containers: by themselves the files that control accelerators give access to no card."""
CARD_FILES = re.compile(r"nvidia\d+|davinci\d+|dri/[^/]+")


def is_card_file(path: str) -> bool:
    """Whether a path below /dev belongs to a single card."""
    return CARD_FILES.fullmatch(path) is not None


def make_devices(directory: str, cards: Iterable[str] = ()) -> None:
    """Make a /dev: harmless devices and what controls accelerators, and the files of these cards."""
    linux.mount("tmpfs", directory, "tmpfs", linux.MS_NOSUID, "mode=0755,size=64k")
    control = [
        name
        for name in os.listdir("/dev")
        if name in EXTRA_DEVICES or (name.startswith("nvidia") and not is_card_file(name))
    ]
    for name in (*DEVICES, *control, *(card for card in cards if is_card_file(card))):
        path = f"{directory}/{name}"
        if not os.path.exists(f"/dev/{name}"):
            continue
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if os.path.isdir(f"/dev/{name}"):
            os.mkdir(path)
        else:
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o666))
        linux.mount(f"/dev/{name}", path, "", linux.MS_BIND)
    for name, target in LINKS.items():
        os.symlink(target, f"{directory}/{name}")
    for name in ("pts", "shm", "mqueue"):
        os.mkdir(f"{directory}/{name}")
    os.close(os.open(f"{directory}/termination-log", os.O_CREAT | os.O_WRONLY, 0o666))
