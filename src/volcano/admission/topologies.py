"""Network topology constraints, which Jobs, partitions, PodGroups and sub-groups share."""

from __future__ import annotations

from volcano.api.scheduling import NetworkTopology


def gives_both_tiers(topology: NetworkTopology | None) -> bool:
    return topology is not None and topology.highest_tier_allowed is not None and bool(topology.highest_tier_name)


def both_tiers_message(where: str) -> str:
    return f"must not specify 'highestTierAllowed' and 'highestTierName' in {where} simultaneously"
