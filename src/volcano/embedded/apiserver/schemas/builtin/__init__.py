"""Kubernetes' own kinds: strict decoding and defaults."""
