"""Why something waits, fails or has ended: the closed list of reasons, their texts, and what an answer consists of.

The scheduler finds the reason on its snapshot (scheduler.explain), the node writes what happens after placement into
the pod's status (read by `after_placement`), and the API server's refusals are read by `refused_pods`. Nothing else
states a reason. The reason that a single cycle records for a job that waits is api.jobs.why's.
"""
