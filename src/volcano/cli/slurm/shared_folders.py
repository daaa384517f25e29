"""Folders of this machine that a batch job needs and in which its pods could not write: each is mounted where it is.

Only on the embedded system, whose pods see the files of this machine read-only and without temporary ones. On a
cluster, the file systems of nodes and the image decide.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from volcano.api.kubelet import DEFAULT_USER_ANNOTATION
from volcano.api.meta import JSON
from volcano.cli.connection import ApiConnection
from volcano.cli.embedded_system import is_complete
from volcano.cli.resources import NODES
from volcano.machinery.clock import SystemClock, wait_blocking
from volcano.machinery.kubeconfig import embedded_data_directory

EMBEDDED: Final = "+volcano-"
ISOLATION_KEY: Final = "agent.volcano.sh/isolation"
PLAIN: Final = "pods are plain processes"
NODES_TIMEOUT_SECONDS: Final = 30.0
POLL_SECONDS: Final = 0.1


class SharedFolders(NamedTuple):
    """What the pods of a job get of this machine, and as whom they run."""

    mounted: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()  # cannot be mounted: the system's own data directory lies in them
    run_as: JSON | None = None  # a pod's securityContext; None: as the system decides


def shared_folders(connection: ApiConnection, wanted: list[str], kubeconfig: str) -> SharedFolders:
    """The folders, and the submitting user where pods may run as each user of this machine."""
    if not _is_embedded(connection):
        return SharedFolders()
    annotations = [node["metadata"].get("annotations") or {} for node in _nodes(connection)]
    if any(PLAIN in each.get(ISOLATION_KEY, "") for each in annotations):
        return SharedFolders()
    asked = [Path(each) for each in dict.fromkeys(wanted)]
    named = [Path(each).parent for each in (kubeconfig, os.environ.get("KUBECONFIG")) if each]
    own = [embedded_data_directory(), *named]
    hidden = [each for each in asked if any(_is_in(each, folder) for folder in own)]
    mounted = [each for each in asked if each not in hidden]
    outer = [each for each in mounted if not any(other != each and _is_in(other, each) for other in mounted)]
    run_as = submitting_user() if any(DEFAULT_USER_ANNOTATION in each for each in annotations) else None
    return SharedFolders(tuple(map(str, outer)), tuple(map(str, hidden)), run_as)


def submitting_user() -> JSON:
    """As in Slurm, a job runs as the user who submits it: another one could not write output in that user's folders."""
    user, group = os.geteuid(), os.getegid()
    others = sorted({*os.getgroups()} - {group})
    found: JSON = {"runAsUser": user, "runAsGroup": group}
    return found | ({"supplementalGroups": others} if others else {})


def with_folders(pod: JSON, folders: Sequence[str], files: Sequence[str] = ()) -> None:
    """Add the mounts to a pod's spec; `files` are output files in folders that cannot be mounted."""
    paths = [*((path, "DirectoryOrCreate") for path in folders), *((path, "FileOrCreate") for path in files)]
    if not paths:
        return
    pod["volumes"] = [
        {"name": f"shared-{place}", "hostPath": {"path": path, "type": kind}}
        for place, (path, kind) in enumerate(paths)
    ]
    for container in pod["containers"]:
        container["volumeMounts"] = [
            {"name": f"shared-{place}", "mountPath": path} for place, (path, _) in enumerate(paths)
        ]


def _is_in(outer: Path, inner: Path) -> bool:
    return inner == outer or outer in inner.parents


def _nodes(connection: ApiConnection) -> list[JSON]:
    """Some nodes. Those of a new system are registered shortly after it is ready, and are waited for."""
    clock = SystemClock()
    deadline = clock.monotonic() + NODES_TIMEOUT_SECONDS
    while True:
        has_started = connection.do(is_complete(connection.client))  # before the nodes are read
        nodes = connection.list(NODES, limit="20")
        if nodes or has_started or clock.monotonic() > deadline:
            return nodes
        wait_blocking(POLL_SECONDS)


def _is_embedded(connection: ApiConnection) -> bool:
    return EMBEDDED in str(msgspec.json.decode(connection.raw("GET", "/version")).get("gitVersion", ""))
