"""The folders of this machine that no pod may mount: the data directory and the agent's own, with keys and credentials.

Where pods have mount namespaces these folders are hidden from them, but a volume would show them at another path.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from volcano.embedded.agent.containers.environment import Missing


@dataclass(frozen=True, slots=True)
class ProtectedFolders:
    """`folders` are protected; below `storage` are the provisioned volumes, which claims may mount."""

    folders: tuple[Path, ...] = ()
    storage: Path | None = None

    def real_path(self, path: str, *, is_claimed: bool = False) -> str:
        """The path without symbolic links, checked as such: a link that is put there later is not followed any more."""
        real = os.path.realpath(path)
        self.check(real, is_claimed=is_claimed)
        return real

    def check(self, path: str, *, is_claimed: bool = False) -> None:
        """Missing when the path, with symbolic links followed, is inside a protected folder or contains one."""
        real = Path(os.path.realpath(path))
        if is_claimed and self.storage is not None:
            storage = Path(os.path.realpath(self.storage))
            if real != storage and real.is_relative_to(storage):
                return
        for folder in self.folders:
            protected = Path(os.path.realpath(folder))
            if real.is_relative_to(protected) or protected.is_relative_to(real):
                raise Missing(f"hostPath {path!r} is refused: it reaches into the data directory of this node's agent")
