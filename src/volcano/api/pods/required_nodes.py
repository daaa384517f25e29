"""The affinity of a pod that may only run on nodes with certain labels, as a front end writes it into a pod."""

from __future__ import annotations

from volcano.api.meta import JSON


def requiring_nodes(terms: list[list[JSON]]) -> JSON:
    """A node must match all expressions of one of the terms; nothing where no term has any."""
    if not any(terms):
        return {}
    selector = {"nodeSelectorTerms": [{"matchExpressions": term} for term in terms]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}
