"""Validation rules in CEL: the evaluator and the functions Kubernetes adds to it."""
