"""Schemas of kinds: Volcano's CRDs made from the structs that read them, and the table of Kubernetes' own kinds."""
