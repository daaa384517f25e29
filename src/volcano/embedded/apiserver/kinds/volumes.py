"""PersistentVolumes and their claims: pending until they are bound."""

from __future__ import annotations

from volcano.embedded.apiserver.kinds.strategy import Strategy


class Volumes(Strategy):
    """PersistentVolumes and PersistentVolumeClaims."""

    has_generation = False
    initial_status = {"phase": "Pending"}
