"""Volcano in Python: a Kubernetes-native batch system, embedded on one machine or on a real cluster."""

__version__ = "0.1.0"
