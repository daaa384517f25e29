"""The input edge: objects of the API server become the Snapshot that a cycle decides on."""

from volcano.scheduler.cache.cache import Cache, CacheSettings
from volcano.scheduler.cache.followed import ESSENTIAL, FOLLOWED, matters
from volcano.scheduler.cache.pending_changes import Batch, Confirmed, PendingChanges

__all__ = ["ESSENTIAL", "FOLLOWED", "Batch", "Cache", "CacheSettings", "Confirmed", "PendingChanges", "matters"]
