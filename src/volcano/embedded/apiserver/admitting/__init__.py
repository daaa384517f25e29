"""Admission that Kubernetes itself has, built in: namespaces, priorities, service accounts, limits, quotas, webhooks.

`server_admission` runs all of it around the hook that the composition root plugs in (Volcano's own rules).
"""
