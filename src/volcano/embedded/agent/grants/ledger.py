"""The record of what pods have: one file in each pod's folder, from which a restarted agent learns it again.

The file is on disk before a container starts, and goes with the pod's folder after the last one ended. So a card or CPU
is free only when nothing runs that was told of it, whichever process was killed in between.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Final

import msgspec

from volcano.embedded.agent.grants.pod_grant import PodGrant

log = logging.getLogger(__name__)
GRANT_FILE: Final = "granted.json"
MAX_GRANT_FILE_BYTES: Final = 1024 * 1024
NO_GRANT: Final = PodGrant()


class GrantLedger:
    """The grants of one agent's pods, by UID."""

    def __init__(self, pods: Path) -> None:
        self._pods = pods
        self._grants: dict[str, PodGrant] = {}

    def open(self) -> None:
        """Read what an earlier agent granted."""
        for folder in self._pods.iterdir():
            try:
                with (folder / GRANT_FILE).open("rb") as file:
                    self._grants[folder.name] = msgspec.json.decode(file.read(MAX_GRANT_FILE_BYTES), type=PodGrant)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except (OSError, msgspec.MsgspecError, RecursionError) as error:
                log.error("what pod %s was granted cannot be read: %s", folder.name, error)

    def get(self, uid: str) -> PodGrant | None:
        return self._grants.get(uid)

    def take(self, uid: str, grant: PodGrant) -> None:
        """Record a grant; OSError when it cannot be written, and then it is not in force."""
        if grant == NO_GRANT:
            return
        folder = self._pods / uid
        folder.mkdir(exist_ok=True)
        fresh = folder / f"{GRANT_FILE}.new"
        with fresh.open("wb") as file:
            file.write(msgspec.json.encode(grant))
            file.flush()
            os.fsync(file.fileno())
        fresh.rename(folder / GRANT_FILE)
        self._grants[uid] = grant

    def release(self, uid: str) -> None:
        """The pod's folder is gone, and nothing of the pod runs."""
        self._grants.pop(uid, None)

    @property
    def held_cards(self) -> frozenset[str]:
        return frozenset(card for grant in self._grants.values() for card in grant.cards)

    def holders_of(self, card: str) -> dict[str, str]:
        """The pods that have a card, each with the claim that it has it by (empty: as an extended resource)."""
        return {uid: grant.claims.get(card, "") for uid, grant in self._grants.items() if card in grant.cards}

    @property
    def held_cpus(self) -> frozenset[int]:
        return frozenset(cpu for grant in self._grants.values() for cpu in grant.cpus)

    @property
    def grants(self) -> dict[str, PodGrant]:
        return dict(self._grants)
