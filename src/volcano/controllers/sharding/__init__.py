"""NodeShards: which nodes each of several schedulers may use. Off by default."""

from volcano.controllers.sharding.controller import ShardingController

__all__ = ["ShardingController"]
