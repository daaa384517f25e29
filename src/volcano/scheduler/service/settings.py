"""SchedulerSettings: the scheduler's flags, parsed."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from volcano.scheduler.cache import CacheSettings


class SchedulerSettings(msgspec.Struct, frozen=True):
    scheduler_conf: str = ""
    scheduler_configmap: str = ""  # NAMESPACE/NAME:KEY
    scheduler_names: tuple[str, ...] = ("volcano",)
    adopt_plain_pods: bool = False
    schedule_period: timedelta = timedelta(seconds=1)
    default_queue: str = "default"
    node_selector: tuple[tuple[str, str], ...] = ()
    ignored_provisioners: tuple[str, ...] = ()
    sharding_mode: str = "none"
    shard_name: str = "volcano"
    admits_by_gate: bool = False
    plugins_dir: str = ""
    needs_own_configuration: bool = False  # no built-in configuration to fall back to
    sync_timeout: timedelta = timedelta(seconds=60)
    record_dir: str = ""
    redact: bool = False

    @property
    def of_cache(self) -> CacheSettings:
        return CacheSettings(
            scheduler_names=frozenset(self.scheduler_names),
            default_queue=self.default_queue,
            adopt_plain_pods=self.adopt_plain_pods,
            admits_by_gate=self.admits_by_gate,
            node_selector=self.node_selector,
            ignored_provisioners=frozenset(self.ignored_provisioners),
            sharding_mode=self.sharding_mode,
            shard_name=self.shard_name,
        )
