"""Addresses and host names of pods, and their connections to each other and to the API server.

The namespaces themselves are made by the supervisor in `processes`; the netlink calls are in `kernel`.
"""
