"""The input edge: objects as the API server tells them become the Snapshot a cycle decides on."""

from volcano.scheduler.cache.cache import Batch, Cache, CacheSettings
from volcano.scheduler.cache.followed import ESSENTIAL, FOLLOWED, matters

__all__ = ["ESSENTIAL", "FOLLOWED", "Batch", "Cache", "CacheSettings", "matters"]
