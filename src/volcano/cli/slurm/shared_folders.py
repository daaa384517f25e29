"""Folders of this machine that a batch job needs and in which its pods could not write: each is mounted where it is.

Only on the embedded system, whose pods see the files of this machine read-only and without temporary ones. On a
cluster, the file systems of nodes and the image decide.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from volcano.api.meta import JSON
from volcano.cli.connection import ApiConnection
from volcano.cli.resources import NODES
from volcano.machinery.kubeconfig import embedded_data_directory

EMBEDDED: Final = "+volcano-"
ISOLATION_KEY: Final = "agent.volcano.sh/isolation"
PLAIN: Final = "pods are plain processes"


def shared_folders(connection: ApiConnection, wanted: list[str], kubeconfig: str) -> tuple[list[str], list[str]]:
    """Folders to mount, and those that cannot be: the system's own data directory lies in them."""
    if not _is_embedded(connection) or not _has_namespaces(connection):
        return [], []
    asked = [Path(each) for each in dict.fromkeys(wanted)]
    named = [Path(each).parent for each in (kubeconfig, os.environ.get("KUBECONFIG")) if each]
    own = [embedded_data_directory(), *named]
    hidden = [each for each in asked if any(_is_in(each, folder) for folder in own)]
    mounted = [each for each in asked if each not in hidden]
    outer = [each for each in mounted if not any(other != each and _is_in(other, each) for other in mounted)]
    return [str(each) for each in outer], [str(each) for each in hidden]


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


def _is_embedded(connection: ApiConnection) -> bool:
    return EMBEDDED in str(msgspec.json.decode(connection.raw("GET", "/version")).get("gitVersion", ""))


def _has_namespaces(connection: ApiConnection) -> bool:
    nodes = connection.list(NODES, limit="20")
    return not any(PLAIN in (node["metadata"].get("annotations") or {}).get(ISOLATION_KEY, "") for node in nodes)
