"""Pods whose specs lead out: by paths of the machine, and by links that are put in their place meanwhile.

Each shows the canary when its way is open; `escapes` creates them and looks.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

DISKS = ("/dev/loop0", "/dev/vda", "/dev/sda", "/dev/nvme0n1")


class EscapePods:
    """`hidden` is a folder that no pod may see, with the canary in its ca.key; `others` are processes with it."""

    def __init__(self, folder: Path, hidden: Path, canary: str, others: list[int]) -> None:
        self._hidden, self._canary, self._others = hidden, canary, others
        self._open = folder / "open"
        (self._open / "part").mkdir(parents=True)
        (self._open / "link").symlink_to(hidden)
        for each in (self._open, self._open / "part"):
            each.chmod(0o777)

    def ways(self) -> dict[str, dict[str, Any]]:
        """Way → what of a pod's spec tries it."""
        hidden, key = self._hidden, self._hidden / "ca.key"
        processes = " ".join(map(str, self._others))
        look = f"for p in {processes}; do cat /out/$p/environ /out/$p/root{key} /out/$p/cwd/ca.key; done"
        show = "cat /out /out/ca.key /out/*"
        groups = "for f in /out /out/*; do mkdir $f/escape && rmdir $f/escape && echo $PROOF; done"
        devices = "for d in mem kmsg loop0 vda sda; do true < /out/$d && echo $PROOF; done"
        swap = f"rmdir /open/part; ln -s {hidden} /open/part"
        part, link, proc, system = (
            _host(path) for path in (f"{self._open}/part", f"{self._open}/link", "/proc", "/sys")
        )
        empty: dict[str, Any] = {"emptyDir": {}}
        message = {"terminationMessagePath": "/out/message"}
        found = {
            "a link in the place of a hostPath": self._spec(show, part, first=swap),
            "a hostPath that is a link": self._spec(show, link),
            "a hostPath of one file of the data directory": self._spec(show, _host(str(key))),
            "others by a hostPath of /proc": self._spec(look, proc),
            "the kernel's settings by a hostPath of /proc": self._spec(_writes("/out/sys/kernel/core_pattern"), proc),
            "the kernel's settings by a hostPath of /sys": self._spec(_writes("/out/kernel/mm/ksm/run"), system),
            "control groups by a hostPath": self._spec(groups, _host("/sys/fs/cgroup")),
            "disks and memory by a hostPath of /dev": self._spec(devices, _host("/dev")),
            "others with hostPID": {**self._spec(look.replace("/out/", "/proc/")), "hostPID": True},
            "a working folder in the data directory": self._spec("cat ca.key", container={"workingDir": str(hidden)}),
            "a link as subPath of a file": self._spec(show, empty, first=f"ln -s {key} /v/file", mount={"subPath": "file"}),
            "a link as termination message": self._spec(f"ln -sf {key} /out/message", empty, container=message),
            "a mount below a link to the data directory": self._spec("cat /out/link/*", empty, first=f"ln -s {hidden} /v/link", below="/out/link/deep"),
            "variables in a subPath": self._spec(show, empty, mount={"subPathExpr": "$(UP)/$(UP)/$(UP)/$(UP)"}),
        }  # fmt: skip
        disk = next((path for path in DISKS if os.path.exists(path)), "")
        return found | ({"a disk as hostPath": self._spec("true < /out && echo $PROOF", _host(disk))} if disk else {})

    def _spec(
        self,
        script: str,
        volume: dict[str, Any] | None = None,
        *,
        first: str = "",
        mount: dict[str, Any] | None = None,
        below: str = "",
        container: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """The volume is at /out; what runs first has it at /v, and the open folder at /open."""
        mounts = [{"name": "v", "mountPath": "/out", **(mount or {})}] if volume else []
        mounts += [{"name": "w", "mountPath": below}] if below else []
        env = [{"name": "PROOF", "value": self._canary}, {"name": "UP", "value": ".."}]
        main = {"name": "main", "image": "host", "command": ["sh", "-c", f"{script}; exit 0"], "env": env}
        volumes = [{"name": "v", **(volume or {"emptyDir": {}})}, {"name": "w", "emptyDir": {}},
                   {"name": "open", **_host(str(self._open))}]  # fmt: skip
        before = [{"name": "v", "mountPath": "/v"}, {"name": "open", "mountPath": "/open"}]
        init = {"name": "first", "image": "host", "command": ["sh", "-c", first], "volumeMounts": before}
        return {
            "containers": [{**main, "volumeMounts": mounts, **(container or {})}],
            "initContainers": [init] if first else [],
            "volumes": volumes,
        }


def _host(path: str) -> dict[str, Any]:
    return {"hostPath": {"path": path}}


def _writes(path: str) -> str:
    """Write what is there already."""
    return f'v=$(cat {path}) && echo "$v" > {path} && echo $PROOF'
