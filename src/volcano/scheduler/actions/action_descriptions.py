"""What each action does and takes, for people: docs/reference/plugins.md is generated from this."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from volcano.scheduler.framework.described_policy import DescribedPolicy

ERROR_CACHE: Final = {
    "predicateErrorCacheEnable": (
        "true",
        "a role that failed on a node is not tried there again in the same attempt, unless a placement may change the"
        " answer (spread, affinity)",
    )
}
GANGS: Final = {
    "maxDomains": ("8", "how many HyperNodes are looked at"),
    "allowWholeBundle": ("true", "whether gangs may be evicted as a whole, after what jobs can spare"),
}
ACTION_DESCRIPTIONS: Final[Mapping[str, DescribedPolicy]] = {
    "enqueue": DescribedPolicy("Lets pending PodGroups into their queues, as far as the plugins permit."),
    "allocate": DescribedPolicy("Gives waiting gangs room, queue by queue.", ERROR_CACHE),
    "backfill": DescribedPolicy("Places tasks that request nothing.", ERROR_CACHE),
    "preempt": DescribedPolicy(
        "Evicts less important tasks of the same queue for starving jobs. Jobs with a network topology are left to"
        " `gangpreempt`.",
        {
            **ERROR_CACHE,
            "enableTopologyAwarePreemption": ("false", "try several nodes out and evict where it costs least"),
            "minCandidateNodesPercentage": ("10", "how many per cent of the nodes are tried out at least"),
            "minCandidateNodesAbsolute": ("1", "how many nodes are tried out at least"),
            "maxCandidateNodesAbsolute": ("100", "how many nodes are tried out at most"),
            "topologyAwarePreemptWorkerNum": ("", "accepted, without effect"),
        },
    ),
    "reclaim": DescribedPolicy("Takes back from queues that hold more than their share.", ERROR_CACHE),
    "gangpreempt": DescribedPolicy(
        "Makes room for a whole starving gang in one HyperNode after the other, by evicting jobs of the same queue"
        " with a lower priority. Not together with `preempt`.",
        GANGS,
    ),
    "gangreclaim": DescribedPolicy(
        "Makes room for a whole starving gang as `gangpreempt` does, from other queues that are reclaimable. Not"
        " together with `reclaim`.",
        GANGS,
    ),
    "shuffle": DescribedPolicy("Evicts pods that plugins want elsewhere (`tdm`, `rescheduling`, `pdb`)."),
}
