"""The output edge: a cycle's decisions become plans for machinery.apply."""

from volcano.scheduler.commit.committer import BindPlan, Commitment, Committer, EvictionPlan, Unwritten
from volcano.scheduler.commit.queues import quantities_from
from volcano.scheduler.commit.steps import bind_failed, shard_status
from volcano.scheduler.commit.told_reasons import ToldReasons

__all__ = [
    "BindPlan",
    "Commitment",
    "Committer",
    "EvictionPlan",
    "ToldReasons",
    "Unwritten",
    "bind_failed",
    "quantities_from",
    "shard_status",
]
