"""Schemas of custom resources: their own validation, and checks, pruning and defaults compiled from them."""
