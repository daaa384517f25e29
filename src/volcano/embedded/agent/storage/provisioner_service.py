"""Runs the folder provisioner: creates the class `standard`, applies plans, removes folders of deleted volumes."""

from __future__ import annotations

import asyncio
import logging
import shutil
from functools import partial
from pathlib import Path

from volcano.api.core import PersistentVolume, StorageClass
from volcano.api.scheme import resource_type
from volcano.embedded.agent.storage.provisioner import FINALIZER, FolderProvisioner, is_ours, standard_class
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock
from volcano.machinery.plan import Create, Patch, ref
from volcano.machinery.runner import Runner
from volcano.machinery.world import Change

log = logging.getLogger(__name__)


class StorageService:
    """Runs the provisioner for the folders below one root."""

    def __init__(self, client: Client, clock: Clock, root: Path, nodes: frozenset[str]) -> None:
        self._clock, self._root = clock, root
        self._runner = Runner(client, clock, [FolderProvisioner(root, nodes)], component=FINALIZER, workers=2)
        self._deleted: asyncio.Queue[PersistentVolume] = asyncio.Queue()

    async def run(self) -> None:
        """Run until cancelled."""
        self._root.mkdir(mode=0o711, parents=True, exist_ok=True)
        self._runner.mirror.listen(PersistentVolume, self._changed)
        await self._runner.applier.apply((Create(resource_type(StorageClass), standard_class()),))
        async with asyncio.TaskGroup() as group:
            group.create_task(self._runner.run())
            group.create_task(self._remove_folders())

    def _changed(self, change: Change[PersistentVolume]) -> None:
        volume = change.new
        if volume is not None and volume.is_deleting and FINALIZER in volume.metadata.finalizers:
            self._deleted.put_nowait(volume)

    async def _remove_folders(self) -> None:
        while True:
            volume = await self._deleted.get()
            if volume.status.phase != "Released" or volume.spec.persistent_volume_reclaim_policy != "Delete":
                log.info("volume %s is deleted, its folder stays: its reclaim policy is not Delete", volume.name)
            elif is_ours(volume, self._root):
                folder = Path(str((volume.spec.host_path or {})["path"]))
                await self._clock.run(partial(shutil.rmtree, folder, ignore_errors=True))
            rest = [each for each in volume.metadata.finalizers if each != FINALIZER]
            await self._runner.applier.apply((Patch(ref(volume), {"metadata": {"finalizers": rest or None}}),))
