"""Runs pods: the Runtime contract, the process runtime and the simulated one, with probes and hooks.

The process runtime is composed of pod_sandboxes (network and files) and container_runs. Nothing here decides what a pod
does next (`lifecycle`) or makes system calls (`processes`, `kernel`).
"""
