"""Jobs: what a plugin of a job is, why a job waits, and how the scheduler explains and simulates it.

The kinds themselves are in api.batch.
"""
