"""Dynamic resource allocation: which devices a pod's ResourceClaims get on a node. Pure; the predicates plugin asks."""
