"""The supervisor and the processes it forks: container holders, exec, logs, attach, namespaces; and its client.

What the supervisor imports uses the standard library only. cgroups and supervisor_client run in the agent. What to
start is decided in `runtime`.
"""
