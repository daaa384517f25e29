"""Expressions in CEL: the evaluator and the functions that Kubernetes adds to it."""
